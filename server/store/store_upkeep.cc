#include "server/store/store_upkeep.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/thread/start_thread.h"

namespace phimap {

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
                {{"error", std::string(report.status().message())}});
    return;
  }
  counts_.removed.fetch_add(report->removed, std::memory_order_relaxed);
  if (report->removed == 0 && report->listed == 0 && report->remains == 0) return;
  logger_.Log(LogLevel::kInfo, "garbage_collected",
              {{"removed_artifacts", absl::StrCat(report->removed)},
               {"listed_artifacts", absl::StrCat(report->listed)},
               {"unlinked_files", absl::StrCat(report->remains)},
               {"held_artifacts", absl::StrCat(report->held)}});
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
                {{"error", std::string(finding.status().message())}});
    return false;  // The next pass continues where this one stopped.
  }
  if (!finding->status.ok()) {
    counts_.errors.fetch_add(1, std::memory_order_relaxed);
    // An artifact that could not be read, such as for want of a file descriptor, may be whole.
    const bool damaged = absl::IsDataLoss(finding->status);
    logger_.Log(damaged ? LogLevel::kError : LogLevel::kWarning,
                damaged ? "artifact_damaged" : "artifacts_not_checked",
                {{"digest", finding->digest}, {"error", std::string(finding->status.message())}});
  }
  return !finding->stopped && !finding->digest.empty();
}

}  // namespace phimap
