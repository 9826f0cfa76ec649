#include "server/registry/version_registry.h"

#include <new>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kRetryDelayMs = 500;

absl::Status TooManyWaiters(const std::string& mapping, int limit) {
  return MakeError(Code::kResourceExhausted, "QUEUE_FULL", "",
                   absl::StrCat("too many requests wait for a version of \"", mapping,
                                "\" to be loaded; the limit is ", limit),
                   {{"limit", absl::StrCat(limit)}}, kRetryDelayMs);
}

}  // namespace

VersionRegistry::VersionRegistry(Options options, Store& store, const RegistryMetrics& metrics,
                                 const Logger& logger)
    : options_(options),
      store_(store),
      metrics_(metrics),
      logger_(logger),
      live_(options.max_live_bytes),
      loader_("version loads", /*threads=*/1, options.max_queued_loads) {}

VersionRegistry::~VersionRegistry() = default;

void VersionRegistry::Acquire(absl::string_view reference, Callback done) {
  Key key;
  std::optional<absl::StatusOr<VersionHandle>> at_hand = Resolve(reference, key);
  if (at_hand.has_value()) return done(*std::move(at_hand));
  EnqueueLoad(key, std::move(done));
}

std::optional<absl::StatusOr<VersionHandle>> VersionRegistry::Resolve(absl::string_view text,
                                                                      Key& key) {
  const absl::StatusOr<Reference> reference = ParseReference(text);
  if (!reference.ok()) return reference.status();
  if (absl::Status aliased = CheckNoAlias(*reference); !aliased.ok()) return aliased;
  MutexLock lock(&mutex_);
  int64_t number = reference->number.value_or(0);
  if (number == 0) {
    const auto newest = newest_.find(reference->mapping);
    if (newest != newest_.end()) number = newest->second;
  }
  if (number != 0) {
    if (auto live = live_.Find(reference->mapping, number)) return VersionHandle(std::move(live));
  }
  key = {std::string(reference->mapping), number};
  return std::nullopt;
}

VersionHandle VersionRegistry::FindLive(absl::string_view mapping, int64_t number) {
  MutexLock lock(&mutex_);
  return VersionHandle(live_.Find(mapping, number));
}

void VersionRegistry::EnqueueLoad(const Key& key, Callback done) {
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    const auto [waiting, first] = waiting_.try_emplace(key);
    if (waiting->second.size() >= options_.max_waiters) {
      refused = TooManyWaiters(key.first, options_.max_waiters);
    } else {
      if (first) refused = loader_.Submit([this, key] { RunLoad(key); });
      if (refused.ok()) {
        waiting->second.push_back(std::move(done));
        return;
      }
      waiting_.erase(waiting);
    }
  }
  done(refused);
}

void VersionRegistry::RunLoad(const Key& key) {
  absl::StatusOr<VersionHandle> loaded = LoadKey(key);
  std::vector<Callback> waiters;
  {
    MutexLock lock(&mutex_);
    const auto waiting = waiting_.find(key);
    waiters = std::move(waiting->second);
    waiting_.erase(waiting);
  }
  if (!loaded.ok() && loaded.status().code() != Code::kNotFound) {
    metrics_.load_errors->Increment();
    const LoggedError error = ErrorForLog(loaded.status());
    logger_.Log(LogLevel::kError, "version_load_failed",
                {{"mapping", key.first},
                 {"version", absl::StrCat(key.second)},
                 {"code", error.code},
                 {"reason", error.reason},
                 {"error", error.message}});
  }
  for (Callback& done : waiters) done(loaded);
}

absl::StatusOr<VersionHandle> VersionRegistry::LoadKey(const Key& key) {
  const std::optional<int64_t> number =
      key.second == 0 ? std::nullopt : std::optional<int64_t>(key.second);
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord record, store_.GetVersion(key.first, number));
  {
    MutexLock lock(&mutex_);
    if (!number.has_value()) LearnNewest(record.mapping, record.number);
    if (auto live = live_.Find(record.mapping, record.number)) {
      return VersionHandle(std::move(live));
    }
  }
  // Roughly; loading packs the artifact into memory of about its size.
  PHIMAP_RETURN_IF_ERROR(MakeRoom(record, record.artifact_size_bytes));
  const absl::Time started = absl::Now();
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<const LiveVersion> version, Load(record));
  PHIMAP_RETURN_IF_ERROR(MakeRoom(record, version->memory_bytes()));
  MutexLock lock(&mutex_);
  live_.Insert(version);  // Only this thread inserts: the room is still there.
  metrics_.loads->Increment();
  metrics_.load_seconds->Observe(absl::ToDoubleSeconds(absl::Now() - started));
  UpdateMetrics();
  return VersionHandle(std::move(version));
}

absl::StatusOr<std::shared_ptr<const LiveVersion>> VersionRegistry::Load(
    const VersionRecord& record) {
  try {
    auto version = std::make_shared<LiveVersion>();
    version->record = record;
    PHIMAP_ASSIGN_OR_RETURN(std::string bytes, store_.ReadArtifact(record.digest));
    PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
    bytes = std::string();  // Before packing, which needs as much again.
    version->certificate = std::move(artifact.certificate);
    PHIMAP_ASSIGN_OR_RETURN(version->engine, Engine::Load(artifact.plan));
    version->series = metrics_.versions->Open(record.mapping, record.number);
    return version;
  } catch (const std::bad_alloc&) {
    return MakeError(Code::kResourceExhausted, "OUT_OF_MEMORY", "",
                     absl::StrCat("not enough memory to load version ", record.number, " of \"",
                                  record.mapping, "\""),
                     {}, kRetryDelayMs);
  }
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

void VersionRegistry::Published(const VersionRecord& record) {
  MutexLock lock(&mutex_);
  LearnNewest(record.mapping, record.number);
}

void VersionRegistry::LearnNewest(absl::string_view mapping, int64_t number) {
  int64_t& newest = newest_[mapping];
  if (number > newest) newest = number;
}

void VersionRegistry::UpdateMetrics() {
  metrics_.live_versions->Set(static_cast<double>(live_.count()));
  metrics_.live_bytes->Set(static_cast<double>(live_.bytes()));
  metrics_.evictions->Increment(static_cast<double>(live_.evictions() - counted_evictions_));
  counted_evictions_ = live_.evictions();
}

}  // namespace phimap
