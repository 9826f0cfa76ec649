#include "server/registry/version_registry.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/version_lookup.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kRetryDelayMs = 500;
constexpr int64_t kFullRetryDelayMs = 200;
// Loads of administration that may wait beside all others: far more than there are calls.
constexpr int kFirstLoads = 4096;
// Half a kilobyte each.
constexpr size_t kRememberedRecords = 10'000;
// The task that sorts the line of warm versions, and the one that takes its first.
constexpr int kWarmTasks = 2;
// Mappings that are listed at once.
constexpr int kListedMappings = 1000;

absl::Status TooManyWaiters(const std::string& mapping, int limit) {
  return MakeError(Code::kResourceExhausted, "QUEUE_FULL", "",
                   absl::StrCat("too many requests wait for a version of \"", mapping,
                                "\" to be loaded; the limit is ", limit),
                   {{"limit", absl::StrCat(limit)}}, kRetryDelayMs);
}

// The versions that aliases name, ascending.
std::vector<int64_t> AliasedVersions(const MappingNames& names) {
  std::vector<int64_t> numbers;
  for (const AliasTarget& alias : names.aliases) numbers.push_back(alias.version);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

absl::Status TooManyLoads(int limit) {
  return MakeError(Code::kResourceExhausted, "QUEUE_FULL", "",
                   absl::StrCat("too many version loads are waiting; the limit is ", limit),
                   {{"limit", absl::StrCat(limit)}}, kFullRetryDelayMs);
}

}  // namespace

VersionRegistry::VersionRegistry(Options options, Store& store, const RegistryMetrics& metrics,
                                 const Logger& logger)
    : options_(std::move(options)),
      store_(store),
      metrics_(metrics),
      logger_(logger),
      view_([this](const MappingNames& before, const MappingNames& now) {
        NamesChanged(before, now);
      }),
      live_(options_.max_live_bytes),
      loader_("version loads", /*threads=*/1, options_.max_queued_loads + kFirstLoads + kWarmTasks,
              metrics.loads_waiting) {}

VersionRegistry::~VersionRegistry() { StopWarming(); }

void VersionRegistry::Acquire(absl::string_view reference, LoadTurn turn, Callback done) {
  Key key;
  std::optional<absl::StatusOr<VersionHandle>> at_hand = Resolve(reference, key);
  if (at_hand.has_value()) return done(*std::move(at_hand));
  EnqueueLoad(key, turn, std::move(done));
}

Reference VersionRegistry::Key::reference() const {
  Reference reference;
  reference.mapping = mapping;
  if (number != 0) reference.number = number;
  reference.alias = alias;
  reference.digest = digest;
  return reference;
}

std::optional<absl::StatusOr<VersionHandle>> VersionRegistry::Resolve(absl::string_view text,
                                                                      Key& key) {
  const absl::StatusOr<Reference> reference = ParseReference(text);
  if (!reference.ok()) return reference.status();
  if (const int64_t number = view_.Find(*reference); number != 0) {
    MutexLock lock(&mutex_);
    if (auto live = live_.Find(reference->mapping, number)) return VersionHandle(std::move(live));
  }
  // The name is loaded, not the number: it may move until then.
  key = {std::string(reference->mapping), reference->number.value_or(0),
         std::string(reference->alias), std::string(reference->digest)};
  return std::nullopt;
}

VersionHandle VersionRegistry::FindLive(absl::string_view mapping, int64_t number) {
  MutexLock lock(&mutex_);
  return VersionHandle(live_.Find(mapping, number));
}

VersionHandle VersionRegistry::FindLive(const Reference& reference) {
  return FindLive(reference.mapping, view_.Find(reference));
}

std::vector<VersionHandle> VersionRegistry::AllLive() {
  std::vector<VersionHandle> handles;
  MutexLock lock(&mutex_);
  for (auto& version : live_.All()) handles.emplace_back(std::move(version));
  return handles;
}

void VersionRegistry::NoteUse(const VersionHandle& version) {
  MutexLock lock(&mutex_);
  uses_.insert({version.record().mapping, version.record().number});
}

std::set<VersionName> VersionRegistry::TakeUses() {
  MutexLock lock(&mutex_);
  return std::exchange(uses_, {});
}

void VersionRegistry::EnqueueLoad(const Key& key, LoadTurn turn, Callback done) {
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    const auto [waiting, added] = waiting_.try_emplace(key);
    if (turn == LoadTurn::kLast && waiting->second.callbacks.size() >= options_.max_waiters) {
      refused = TooManyWaiters(key.mapping, options_.max_waiters);
    } else {
      refused = LineUp(key, turn, /*waits=*/!added);
      if (refused.ok()) {
        waiting->second.for_readers = true;
        waiting->second.callbacks.push_back(std::move(done));
        return;
      }
      waiting_.erase(waiting);
    }
  }
  done(refused);
}

absl::Status VersionRegistry::LineUp(const Key& key, LoadTurn turn, bool waits) {
  if (waits) {
    // One that is being loaded already is in no line.
    const auto found = std::find(last_.begin(), last_.end(), key);
    if (turn == LoadTurn::kFirst && found != last_.end()) {
      last_.erase(found);
      first_.push_back(key);
    }
    return absl::OkStatus();
  }
  if (turn == LoadTurn::kLast && last_.size() >= options_.max_queued_loads) {
    return TooManyLoads(options_.max_queued_loads);
  }
  PHIMAP_RETURN_IF_ERROR(loader_.Submit([this] { RunNextLoad(); }));
  (turn == LoadTurn::kFirst ? first_ : last_).push_back(key);
  return absl::OkStatus();
}

std::optional<VersionRegistry::Key> VersionRegistry::TakeNext() {
  MutexLock lock(&mutex_);
  std::deque<Key>& line = first_.empty() ? last_ : first_;
  if (line.empty()) return TakeWarm();
  Key key = std::move(line.front());
  line.pop_front();
  return key;
}

std::optional<VersionRegistry::Key> VersionRegistry::TakeWarm() {
  warm_submitted_ = false;
  std::optional<Key> taken;
  while (const std::optional<VersionName> version = warm_line_.Take()) {
    if (live_.Contains(version->mapping, version->number)) continue;
    taken = Key{version->mapping, version->number, ""};
    waiting_.try_emplace(*taken);
    break;
  }
  warm_load_ = taken;
  SubmitWarm();
  UpdateMetrics();
  return taken;
}

void VersionRegistry::RunNextLoad() {
  if (const std::optional<Key> key = TakeNext()) RunLoad(*key);
}

void VersionRegistry::RunLoad(const Key& key) {
  absl::StatusOr<Loaded> loaded = Loaded();
  std::vector<Callback> waiters;
  Attempt attempt;
  int64_t number = key.number;
  do {
    attempt = BeginAttempt(key);
    loaded = LoadKey(key, attempt, loaded.ok() ? *loaded : nullptr, number);
  } while (!Conclude(key, attempt, loaded, waiters));
  if (!loaded.ok()) LogFailure(key, number, attempt, loaded.status());
  for (Callback& done : waiters) {
    if (loaded.ok()) {
      done(VersionHandle(*loaded));
    } else {
      done(loaded.status());
    }
  }
  if (!loaded.ok()) return;
  for (const std::string& alias : view_.AliasesOf(key.mapping, number)) {
    TellAliasChanged(key.mapping, alias);
  }
}

VersionRegistry::Attempt VersionRegistry::BeginAttempt(const Key& key) {
  MutexLock lock(&mutex_);
  const bool for_readers = waiting_.find(key)->second.for_readers;
  const bool named = warming_ == Warming::kOn && live_.IsPinned(key.mapping, key.number);
  return {.news = news_, .for_readers = for_readers, .wanted = for_readers || named};
}

bool VersionRegistry::Conclude(const Key& key, const Attempt& attempt,
                               const absl::StatusOr<Loaded>& loaded,
                               std::vector<Callback>& waiters) {
  MutexLock lock(&mutex_);
  if (news_ != attempt.news) return false;
  const auto waiting = waiting_.find(key);
  if (!loaded.ok() && waiting->second.for_readers && !attempt.for_readers) return false;
  if (loaded.ok() && waiting->second.for_readers) {
    uses_.insert({(*loaded)->record.mapping, (*loaded)->record.number});
  }
  waiters = std::move(waiting->second.callbacks);
  waiting_.erase(waiting);
  if (warm_load_ == key) warm_load_.reset();
  if (loaded.ok()) {
    const VersionRecord& record = (*loaded)->record;
    warm_line_.Remove(record.mapping, record.number);
    // Only this thread inserts: the capacity is still there.
    if (live_.Find(record.mapping, record.number) == nullptr) live_.Insert(*loaded);
  }
  UpdateMetrics();
  return true;
}

void VersionRegistry::LogFailure(const Key& key, int64_t number, const Attempt& attempt,
                                 const absl::Status& error) {
  if (absl::IsNotFound(error)) return;
  const LoggedError facts = ErrorForLog(error);
  // A version that only found no capacity in the background is not at fault.
  const bool passed_over = !attempt.for_readers && facts.reason == "LIVE_VERSIONS_FULL";
  if (!passed_over) metrics_.load_errors->Increment();
  logger_.Log(passed_over ? LogLevel::kWarning : LogLevel::kError,
              passed_over ? "alias_version_not_warm" : "version_load_failed",
              {{"mapping", key.mapping},
               {"version", number == 0 ? "unknown" : absl::StrCat(number)},
               {"code", facts.code},
               {"reason", facts.reason},
               {"error", facts.message}});
}

absl::StatusOr<VersionRegistry::Loaded> VersionRegistry::LoadKey(const Key& key,
                                                                 const Attempt& attempt,
                                                                 const Loaded& last,
                                                                 int64_t& number) {
  if (!attempt.wanted) return absl::NotFoundError("no alias names the version any more");
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const VersionRecord record, LookUp(key));
    number = record.number;
    {
      MutexLock lock(&mutex_);
      if (Loaded live = live_.Find(record.mapping, record.number)) return live;
    }
    if (last != nullptr && last->record.number == record.number &&
        last->record.digest == record.digest) {
      return last;
    }
    absl::StatusOr<Loaded> loaded = LoadRecord(record, attempt.eviction());
    // Deleted since it was looked up: the name may mean another version now, or none.
    if (!absl::IsNotFound(loaded.status())) return loaded;
    PHIMAP_RETURN_IF_ERROR(CatchUp());
  }
}

absl::StatusOr<VersionRecord> VersionRegistry::LookUp(const Key& key) {
  const int64_t known = view_.Find(key.reference());
  if (known != 0) {
    absl::StatusOr<VersionRecord> record = RecordOf(key.mapping, known);
    if (!absl::IsNotFound(record.status())) return record;
  }
  // The view is behind the store, or there is no such name: the store says which.
  PHIMAP_RETURN_IF_ERROR(CatchUp());
  return LookUpVersion(store_, key.reference());
}

absl::StatusOr<VersionRecord> VersionRegistry::RecordOf(const std::string& mapping,
                                                        int64_t number) {
  uint64_t news = 0;
  {
    MutexLock lock(&mutex_);
    if (const auto found = records_.find({mapping, number}); found != records_.end()) {
      return found->second;
    }
    news = news_;
  }
  PHIMAP_ASSIGN_OR_RETURN(VersionRecord record, store_.GetVersion(mapping, number));
  MutexLock lock(&mutex_);
  if (news_ != news) return record;  // It may be gone by now.
  if (records_.size() >= kRememberedRecords) records_.erase(records_.begin());
  records_.emplace(std::make_pair(mapping, number), record);
  return record;
}

absl::StatusOr<VersionRegistry::Loaded> VersionRegistry::LoadRecord(const VersionRecord& record,
                                                                    Eviction eviction) {
  // Roughly; loading packs the artifact into memory of about its size.
  PHIMAP_RETURN_IF_ERROR(MakeRoom(record, record.artifact_size_bytes, eviction));
  ReturnFreedMemory();
  if (options_.before_load) options_.before_load();
  const auto started = std::chrono::steady_clock::now();
  PHIMAP_ASSIGN_OR_RETURN(Loaded version, Load(record));
  PHIMAP_RETURN_IF_ERROR(MakeRoom(record, version->memory_bytes(), eviction));
  metrics_.loads->Increment();
  metrics_.load_seconds->Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  return version;
}

// Arrays of up to 2 MiB are parts of a heap (ReturnLargeBuffers), and evicted ones leave holes
// between those that stay. With 48 MiB of versions of 2.3 MiB each, of which 130 a second are
// loaded and evicted, the process takes 140 MiB without this, and 88 MiB with it. It takes 0.4 ms
// then.
void VersionRegistry::ReturnFreedMemory() {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(returned_evictions_, live_.evictions()) == live_.evictions()) return;
  }
  malloc_trim(0);
}

absl::StatusOr<VersionRegistry::Loaded> VersionRegistry::Load(const VersionRecord& record) {
  try {
    auto version = std::make_shared<LiveVersion>();
    version->record = record;
    PHIMAP_ASSIGN_OR_RETURN(std::string bytes, store_.ReadArtifactOf(record));
    PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
    bytes = std::string();  // Before packing, which needs as much again.
    version->certificate = std::move(artifact.certificate);
    version->standardize = artifact.provenance.standardize;
    version->seed = artifact.provenance.seed;
    version->columns = NamedColumns(std::move(artifact.provenance.column_names));
    PHIMAP_ASSIGN_OR_RETURN(version->engine, Engine::Load(artifact.plan));
    version->residual = Residual::Of(artifact.plan, artifact.provenance);
    PHIMAP_ASSIGN_OR_RETURN(version->kernel,
                            KernelOf(artifact.plan, version->residual.has_value()));
    version->series = metrics_.versions->Open(record.mapping, record.number);
    return version;
  } catch (const std::bad_alloc&) {
    return MakeError(Code::kResourceExhausted, "OUT_OF_MEMORY", "",
                     absl::StrCat("not enough memory to load version ", record.number, " of \"",
                                  record.mapping, "\""),
                     {}, kRetryDelayMs);
  }
}

absl::StatusOr<std::shared_ptr<KernelQueue>> VersionRegistry::KernelOf(const Plan& plan,
                                                                       bool want_diagonal) const {
  const auto* const block =
      std::visit([](const auto& stages) { return std::get_if<ExternalFeatures>(&stages.features); },
                 plan.stages);
  if (block == nullptr || block->kind == ExternalFeatures::ExampleKind::kRowNumbers) {
    return nullptr;
  }
  PHIMAP_ASSIGN_OR_RETURN(KernelService* const service,
                          FindKernelService(options_.kernels, block->endpoint, ""));
  return std::make_shared<KernelQueue>(*service, *block, plan.input_columns(), want_diagonal);
}

absl::Status VersionRegistry::MakeRoom(const VersionRecord& record, int64_t bytes,
                                       Eviction eviction) {
  MutexLock lock(&mutex_);
  const bool fits = live_.MakeRoom(bytes, eviction);
  UpdateMetrics();
  if (fits) return absl::OkStatus();
  // Over the limit alone, it will not fit later either.
  const int64_t retry_delay_ms = bytes <= options_.max_live_bytes ? kRetryDelayMs : 0;
  return MakeError(Code::kResourceExhausted, "LIVE_VERSIONS_FULL", "",
                   absl::StrCat("version ", record.number, " of \"", record.mapping, "\" needs ",
                                bytes, " bytes; live versions in use hold ", live_.bytes(),
                                " of the limit of ", options_.max_live_bytes),
                   {{"limit", absl::StrCat(options_.max_live_bytes)}}, retry_delay_ms);
}

std::optional<Revision> VersionRegistry::revision_with_own_changes() {
  {
    MutexLock lock(&mutex_);
    if (behind_since_ != 0) return std::nullopt;
  }
  return view_.revision();
}

void VersionRegistry::NoteCatchUp(int64_t number, bool ok) {
  MutexLock lock(&mutex_);
  if (!ok) {
    behind_since_ = catch_ups_;
  } else if (number > behind_since_) {
    behind_since_ = 0;
  }
}

absl::Status VersionRegistry::CatchUp(CatalogView::Source source) {
  int64_t number = 0;
  {
    MutexLock lock(&mutex_);
    number = ++catch_ups_;
  }
  const absl::Status caught_up = view_.CatchUp(source);
  NoteCatchUp(number, caught_up.ok());
  if (!caught_up.ok()) {
    const LoggedError facts = ErrorForLog(caught_up);
    logger_.Log(LogLevel::kError, "names_not_read",
                {{"code", facts.code}, {"reason", facts.reason}, {"error", facts.message}});
  }
  return caught_up;
}

bool VersionRegistry::HasSame(const MappingNames& now, int64_t number) {
  const auto found = std::lower_bound(now.versions.begin(), now.versions.end(), number);
  if (found == now.versions.end() || *found != number) return false;
  if (now.digests.empty()) return true;
  const std::string& digest = now.digests[static_cast<size_t>(found - now.versions.begin())];
  const Loaded live = live_.Peek(now.mapping, number);
  const auto record = records_.find({now.mapping, number});
  return (live == nullptr || live->record.digest == digest) &&
         (record == records_.end() || record->second.digest == digest);
}

void VersionRegistry::Retire(const std::string& mapping, int64_t number) {
  live_.Retire(mapping, number);
  records_.erase({mapping, number});
}

void VersionRegistry::NamesChanged(const MappingNames& before, const MappingNames& now) {
  {
    MutexLock lock(&mutex_);
    ++news_;
    live_.Pin(now.mapping, AliasedVersions(now));
    WarmMoved(before, now);
    for (const int64_t number : before.versions) {
      if (!HasSame(now, number)) Retire(now.mapping, number);
    }
    UpdateMetrics();
  }
  // By how many versions each alias moved; those that stand, by none.
  std::map<absl::string_view, int64_t> moved;
  for (const AliasTarget& alias : before.aliases) moved[alias.alias] -= alias.version;
  for (const AliasTarget& alias : now.aliases) moved[alias.alias] += alias.version;
  for (const auto& [alias, distance] : moved) {
    if (distance != 0) TellAliasChanged(now.mapping, alias);
  }
}

void VersionRegistry::WarmMoved(const MappingNames& before, const MappingNames& now) {
  for (const int64_t number : AliasedVersions(before)) {
    if (!live_.IsPinned(now.mapping, number)) warm_line_.Remove(now.mapping, number);
  }
  if (warming_ != Warming::kOn) return;
  for (const AliasTarget& alias : now.aliases) {
    const bool stands = std::any_of(before.aliases.begin(), before.aliases.end(), [&](auto& old) {
      return old.alias == alias.alias && old.version == alias.version;
    });
    if (stands || live_.Contains(now.mapping, alias.version)) continue;
    warm_line_.PushFront({now.mapping, alias.version});
  }
  SubmitWarm();
}

void VersionRegistry::WarmAliases() {
  MutexLock lock(&mutex_);
  if (warming_ != Warming::kNotYet) return;
  warming_ = Warming::kOn;
  for (VersionName& version : live_.MissingPinned()) warm_line_.PushBack(std::move(version));
  // Until they are sorted none is taken.
  if (!warm_line_.empty() && loader_.Submit([this] { SortWarmLine(); }).ok()) {
    warm_submitted_ = true;
  }
  UpdateMetrics();
}

void VersionRegistry::SortWarmLine() {
  WarmLine::MoveTimes times;
  std::string after;
  while (true) {
    // Without an answer the order is that of names.
    const absl::StatusOr<std::vector<MappingRecord>> mappings =
        store_.ListMappings(after, kListedMappings);
    if (!mappings.ok() || mappings->empty()) break;
    for (const MappingRecord& mapping : *mappings) {
      for (const AliasRecord& alias : mapping.aliases) {
        absl::Time& time = times.try_emplace({mapping.name, alias.version}).first->second;
        time = std::max(time, alias.move_time);
      }
    }
    after = mappings->back().name;
  }
  MutexLock lock(&mutex_);
  warm_line_.Sort(times);
  warm_submitted_ = false;
  SubmitWarm();
}

void VersionRegistry::SubmitWarm() {
  if (warm_submitted_ || warm_line_.empty()) return;
  // The loader's queue has a place for this one.
  warm_submitted_ = loader_.Submit([this] { RunNextLoad(); }).ok();
}

void VersionRegistry::StopWarming() {
  MutexLock lock(&mutex_);
  warming_ = Warming::kStopped;
  warm_line_.Clear();
  UpdateMetrics();
  warmed_.NotifyAll();
}

int64_t VersionRegistry::CountWarming() const {
  return warm_line_.size() + (warm_load_.has_value() ? 1 : 0);
}

int64_t VersionRegistry::warming() {
  MutexLock lock(&mutex_);
  return warming_ == Warming::kStopped ? 0 : CountWarming();
}

VersionRegistry::Warmth VersionRegistry::AwaitWarm(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(&mutex_);
  while (warming_ != Warming::kStopped && CountWarming() > 0) {
    if (!warmed_.WaitUntil(&mutex_, deadline)) break;
  }
  if (warming_ == Warming::kStopped) return Warmth::kStopped;
  return CountWarming() == 0 ? Warmth::kWarm : Warmth::kLate;
}

void VersionRegistry::TellAliasChanged(absl::string_view mapping, absl::string_view alias) {
  if (options_.alias_changed) options_.alias_changed(*this, mapping, alias);
}

void VersionRegistry::UpdateMetrics() {
  metrics_.live_versions->Set(static_cast<double>(live_.count()));
  metrics_.live_bytes->Set(static_cast<double>(live_.bytes()));
  metrics_.evictions->Increment(static_cast<double>(live_.evictions() - counted_evictions_));
  counted_evictions_ = live_.evictions();
  const int64_t loading = CountWarming();
  // One that is loaded while its alias moves away is still counted as loading.
  const int64_t failed = std::max<int64_t>(0, live_.pinned() - live_.pinned_here() - loading);
  metrics_.alias_versions_warm->Set(static_cast<double>(live_.pinned_here()));
  metrics_.alias_versions_loading->Set(static_cast<double>(loading));
  metrics_.alias_versions_failed->Set(static_cast<double>(failed));
  if (loading == 0) warmed_.NotifyAll();
}

}  // namespace phimap
