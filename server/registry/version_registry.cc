#include "server/registry/version_registry.h"

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

absl::Status TooManyWaiters(const std::string& mapping, int limit) {
  return MakeError(Code::kResourceExhausted, "QUEUE_FULL", "",
                   absl::StrCat("too many requests wait for a version of \"", mapping,
                                "\" to be loaded; the limit is ", limit),
                   {{"limit", absl::StrCat(limit)}}, kRetryDelayMs);
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
      view_(store, [this](const MappingNames& before,
                          const MappingNames& now) { NamesChanged(before, now); }),
      live_(options_.max_live_bytes),
      loader_("version loads", /*threads=*/1, options_.max_queued_loads + kFirstLoads,
              metrics.loads_waiting) {}

VersionRegistry::~VersionRegistry() = default;

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
         std::string(reference->alias)};
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

void VersionRegistry::EnqueueLoad(const Key& key, LoadTurn turn, Callback done) {
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    const auto [waiting, added] = waiting_.try_emplace(key);
    if (turn == LoadTurn::kLast && waiting->second.size() >= options_.max_waiters) {
      refused = TooManyWaiters(key.mapping, options_.max_waiters);
    } else {
      refused = LineUp(key, turn, /*waits=*/!added);
      if (refused.ok()) {
        waiting->second.push_back(std::move(done));
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

VersionRegistry::Key VersionRegistry::TakeNext() {
  MutexLock lock(&mutex_);
  std::deque<Key>& line = first_.empty() ? last_ : first_;
  Key key = std::move(line.front());
  line.pop_front();
  return key;
}

void VersionRegistry::RunNextLoad() { RunLoad(TakeNext()); }

void VersionRegistry::RunLoad(const Key& key) {
  absl::StatusOr<Loaded> loaded = Loaded();
  std::vector<Callback> waiters;
  uint64_t news = 0;
  int64_t number = key.number;
  do {
    news = News();
    loaded = LoadKey(key, loaded.ok() ? *loaded : nullptr, number);
  } while (!Conclude(key, news, loaded, waiters));
  if (!loaded.ok()) LogFailure(key, number, loaded.status());
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

uint64_t VersionRegistry::News() {
  MutexLock lock(&mutex_);
  return news_;
}

bool VersionRegistry::Conclude(const Key& key, uint64_t news, const absl::StatusOr<Loaded>& loaded,
                               std::vector<Callback>& waiters) {
  MutexLock lock(&mutex_);
  if (news_ != news) return false;
  const auto waiting = waiting_.find(key);
  waiters = std::move(waiting->second);
  waiting_.erase(waiting);
  if (!loaded.ok()) return true;
  const VersionRecord& record = (*loaded)->record;
  if (live_.Find(record.mapping, record.number) == nullptr) {
    live_.Insert(*loaded);  // Only this thread inserts: the room is still there.
    UpdateMetrics();
  }
  return true;
}

void VersionRegistry::LogFailure(const Key& key, int64_t number, const absl::Status& error) {
  if (absl::IsNotFound(error)) return;
  metrics_.load_errors->Increment();
  const LoggedError facts = ErrorForLog(error);
  logger_.Log(LogLevel::kError, "version_load_failed",
              {{"mapping", key.mapping},
               {"version", number == 0 ? "unknown" : absl::StrCat(number)},
               {"code", facts.code},
               {"reason", facts.reason},
               {"error", facts.message}});
}

absl::StatusOr<VersionRegistry::Loaded> VersionRegistry::LoadKey(const Key& key, const Loaded& last,
                                                                 int64_t& number) {
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const VersionRecord record, LookUp(key));
    number = record.number;
    {
      MutexLock lock(&mutex_);
      if (Loaded live = live_.Find(record.mapping, record.number)) return live;
    }
    if (last != nullptr && last->record.number == record.number) return last;
    absl::StatusOr<Loaded> loaded = LoadRecord(record);
    // Deleted since it was looked up: the name may mean another version now, or none.
    if (!absl::IsNotFound(loaded.status())) return loaded;
    PHIMAP_RETURN_IF_ERROR(CatchUp());
  }
}

absl::StatusOr<VersionRecord> VersionRegistry::LookUp(const Key& key) {
  const int64_t known = view_.Find(key.reference());
  if (known != 0) {
    absl::StatusOr<VersionRecord> record = store_.GetVersion(key.mapping, known);
    if (!absl::IsNotFound(record.status())) return record;
  }
  // The view is behind the store, or there is no such name: the store says which.
  PHIMAP_RETURN_IF_ERROR(CatchUp());
  return LookUpVersion(store_, key.reference());
}

absl::StatusOr<VersionRegistry::Loaded> VersionRegistry::LoadRecord(const VersionRecord& record) {
  // Roughly; loading packs the artifact into memory of about its size.
  PHIMAP_RETURN_IF_ERROR(MakeRoom(record, record.artifact_size_bytes));
  const auto started = std::chrono::steady_clock::now();
  PHIMAP_ASSIGN_OR_RETURN(Loaded version, Load(record));
  PHIMAP_RETURN_IF_ERROR(MakeRoom(record, version->memory_bytes()));
  metrics_.loads->Increment();
  metrics_.load_seconds->Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  return version;
}

absl::StatusOr<VersionRegistry::Loaded> VersionRegistry::Load(const VersionRecord& record) {
  try {
    auto version = std::make_shared<LiveVersion>();
    version->record = record;
    PHIMAP_ASSIGN_OR_RETURN(std::string bytes, store_.ReadArtifact(record.digest));
    PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
    bytes = std::string();  // Before packing, which needs as much again.
    version->certificate = std::move(artifact.certificate);
    version->standardize = artifact.provenance.standardize;
    version->seed = artifact.provenance.seed;
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

absl::Status VersionRegistry::MakeRoom(const VersionRecord& record, int64_t bytes) {
  MutexLock lock(&mutex_);
  const bool fits = live_.MakeRoom(bytes);
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

absl::Status VersionRegistry::CatchUp() {
  const absl::Status caught_up = view_.CatchUp();
  if (!caught_up.ok()) {
    const LoggedError facts = ErrorForLog(caught_up);
    logger_.Log(LogLevel::kError, "names_not_read",
                {{"code", facts.code}, {"reason", facts.reason}, {"error", facts.message}});
  }
  return caught_up;
}

void VersionRegistry::NamesChanged(const MappingNames& before, const MappingNames& now) {
  {
    MutexLock lock(&mutex_);
    ++news_;
    for (const int64_t number : before.versions) {
      if (!std::binary_search(now.versions.begin(), now.versions.end(), number)) {
        live_.Retire(now.mapping, number);
      }
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

void VersionRegistry::TellAliasChanged(absl::string_view mapping, absl::string_view alias) {
  if (options_.alias_changed) options_.alias_changed(*this, mapping, alias);
}

void VersionRegistry::UpdateMetrics() {
  metrics_.live_versions->Set(static_cast<double>(live_.count()));
  metrics_.live_bytes->Set(static_cast<double>(live_.bytes()));
  metrics_.evictions->Increment(static_cast<double>(live_.evictions() - counted_evictions_));
  counted_evictions_ = live_.evictions();
}

}  // namespace phimap
