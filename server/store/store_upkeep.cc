#include "server/store/store_upkeep.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"
#include "server/store/catalog_tables.h"

namespace phimap {

absl::StatusOr<Scrubber::Finding> Scrubber::Step(Pace pace) {
  Finding finding;
  int64_t size_bytes = 0;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows next,
                            session.Run("SELECT digest, artifact_size_bytes FROM versions "
                                        "WHERE digest > $1 ORDER BY digest LIMIT 1",
                                        {last_}));
    finding.digest = next.empty() ? "" : next.Text(0, 0);
    size_bytes = next.empty() ? 0 : next.Int(0, 1);
    return absl::OkStatus();
  }));
  if (finding.digest.empty()) {
    last_.clear();
    return finding;
  }
  finding.status = ReadWhole(finding.digest, size_bytes, pace, &finding.stopped);
  if (finding.stopped) return finding;
  last_ = finding.digest;
  if (absl::IsDataLoss(finding.status)) {
    // A version that was deleted and collected since then is missing, not damaged.
    bool named = false;
    PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(const std::optional<int64_t> size,
                              CatalogTables(session).ArtifactSizeBytes(finding.digest));
      named = size.has_value();
      return absl::OkStatus();
    }));
    if (!named) finding.status = absl::OkStatus();
  }
  MutexLock lock(&mutex_);
  if (absl::IsDataLoss(finding.status)) damaged_.insert(finding.digest);
  if (finding.status.ok()) damaged_.erase(finding.digest);
  return finding;
}

absl::Status Scrubber::ReadWhole(absl::string_view digest, int64_t size_bytes, Pace pace,
                                 bool* stopped) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader,
                          blobs_->OpenReader(digest, size_bytes));
  for (int64_t left = size_bytes; left > 0;) {
    const int64_t wanted = std::min(left, kPieceBytes);
    if (!pace(wanted)) {
      *stopped = true;
      return absl::OkStatus();
    }
    PHIMAP_ASSIGN_OR_RETURN(const std::string piece, reader->Next(wanted));
    if (piece.empty()) break;
    left -= static_cast<int64_t>(piece.size());
    bytes_.fetch_add(static_cast<int64_t>(piece.size()), std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

int64_t Scrubber::damaged() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(damaged_.size());
}

StoreUpkeep::StoreUpkeep(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs,
                         std::string holder, std::shared_ptr<StoreClock> clock,
                         const UpkeepOptions& options, const Logger& logger)
    : options_(options),
      logger_(logger),
      clock_(std::move(clock)),
      collector_(database, blobs, std::move(holder), clock_),
      scrubber_(database, blobs),
      collect_at_(Clock::now() + absl::ToChronoNanoseconds(options.first_after)),
      thread_(StartThread("the upkeep of the store", [this] { Run(); })) {}

StoreUpkeep::~StoreUpkeep() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  thread_.join();
}

void StoreUpkeep::Run() {
  for (;;) {
    const Clock::time_point next_pass =
        Clock::now() + absl::ToChronoNanoseconds(options_.scrub_period);
    if (!WaitUntil(collect_at_)) return;
    while (options_.scrub_bytes_per_second > 0 && Scrub()) {
    }
    if (!WaitUntil(next_pass)) return;
  }
}

bool StoreUpkeep::WaitUntil(Clock::time_point end) {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && stop_.WaitUntil(&mutex_, std::min(end, collect_at_))) {
      }
      if (stopping_) return false;
    }
    if (Clock::now() >= collect_at_) {
      Collect();
      collect_at_ = Clock::now() + absl::ToChronoNanoseconds(options_.collect_period);
    }
    if (Clock::now() >= end) return true;
  }
}

void StoreUpkeep::Collect() {
  options_.prepare();
  const absl::StatusOr<GarbageReport> report = collector_.Run(options_.grace);
  if (!report.ok()) {
    counts_.errors.fetch_add(1, std::memory_order_relaxed);
    logger_.Log(LogLevel::kWarning, "garbage_not_collected",
                {{"error", report.status().message()}});
    return;
  }
  counts_.removed.fetch_add(report->removed, std::memory_order_relaxed);
  if (report->removed == 0 && report->listed == 0 && report->remains == 0) return;
  logger_.Log(LogLevel::kInfo, "garbage_collected",
              {{"removed_artifacts", report->removed},
               {"listed_artifacts", report->listed},
               {"unlinked_files", report->remains},
               {"held_artifacts", report->held}});
}

bool StoreUpkeep::Scrub() {
  const auto pace = [this](int64_t bytes) {
    const auto pause = std::chrono::duration<double>(
        static_cast<double>(bytes) / static_cast<double>(options_.scrub_bytes_per_second));
    return WaitUntil(Clock::now() + std::chrono::duration_cast<Clock::duration>(pause));
  };
  const absl::StatusOr<Scrubber::Finding> finding = scrubber_.Step(pace);
  if (!finding.ok()) {
    counts_.errors.fetch_add(1, std::memory_order_relaxed);
    logger_.Log(LogLevel::kWarning, "artifacts_not_checked",
                {{"error", finding.status().message()}});
    return false;  // The next pass continues where this one stopped.
  }
  if (!finding->status.ok()) {
    counts_.errors.fetch_add(1, std::memory_order_relaxed);
    // An artifact that could not be read, such as for want of a file descriptor, may be whole.
    const bool damaged = absl::IsDataLoss(finding->status);
    logger_.Log(damaged ? LogLevel::kError : LogLevel::kWarning,
                damaged ? "artifact_damaged" : "artifacts_not_checked",
                {{"digest", finding->digest}, {"error", finding->status.message()}});
  }
  return !finding->stopped && !finding->digest.empty();
}

}  // namespace phimap
