// Maintains a store from its own thread: collects garbage every few minutes, and checks the
// artifacts against their digests once a day, slowly.
#ifndef PHIMAP_SERVER_STORE_STORE_UPKEEP_H_
#define PHIMAP_SERVER_STORE_STORE_UPKEEP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/observe/log.h"
#include "server/store/blobs.h"
#include "server/store/garbage_collector.h"
#include "server/store/sql_database.h"
#include "server/store/store_clock.h"

namespace phimap {

// Compares stored artifacts with their digests, one after another, to find damage while a backup
// may still contain undamaged copies. Holds no lock and no transaction while it reads. Step may be
// called by one thread at a time; everything else is thread-safe.
class Scrubber {
 public:
  // Called with the number of bytes that will be read next. Returns false to end the step.
  using Pace = absl::FunctionRef<bool(int64_t bytes)>;
  static constexpr int64_t kPieceBytes = int64_t{256} << 10;

  struct Finding {
    // Digest of the artifact. Empty at the end of a pass; the next step begins another pass.
    std::string digest;
    // OK, or the reason why the whole artifact cannot be read.
    absl::Status status;
    // `pace` ended the step. The next step reads the artifact again.
    bool stopped = false;
  };

  Scrubber(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs)
      : database_(std::move(database)), blobs_(std::move(blobs)) {}

  // Reads the next artifact that a version refers to, in the order of digests. Errors are those of
  // the database; faults of the artifact are in the finding.
  absl::StatusOr<Finding> Step(Pace pace) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Number of artifacts that were found damaged, and have not been found whole since.
  int64_t damaged() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status ReadWhole(absl::string_view digest, int64_t size_bytes, Pace pace, bool* stopped);

  const std::shared_ptr<SqlDatabase> database_;
  const std::shared_ptr<Blobs> blobs_;
  std::string last_;
  std::atomic<int64_t> bytes_{0};
  mutable Mutex mutex_;
  absl::flat_hash_set<std::string> damaged_ ABSL_GUARDED_BY(mutex_);
};

struct UpkeepOptions {
  absl::Duration grace = GarbageCollector::kDefaultGrace;
  // 0 means that no artifact is checked.
  int64_t scrub_bytes_per_second = int64_t{4} << 20;
  // Time before the first run, so that a starting server is not disturbed.
  absl::Duration first_after = absl::Seconds(10);
  absl::Duration collect_period = absl::Minutes(5);
  absl::Duration scrub_period = absl::Hours(24);
  // Called each time before garbage is collected.
  std::function<void()> prepare = [] {};
};

// Thread-safe. Failures of the database or the disk are logged, and the work is retried.
class StoreUpkeep {
 public:
  struct Counts {
    std::atomic<int64_t> removed{0};
    std::atomic<int64_t> errors{0};
  };

  // `logger` must outlive this object. `holder` distinguishes this process from others.
  StoreUpkeep(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs,
              std::string holder, std::shared_ptr<StoreClock> clock, const UpkeepOptions& options,
              const Logger& logger);
  // The destructor waits for at most one statement or one piece of an artifact.
  ~StoreUpkeep();
  StoreUpkeep(const StoreUpkeep&) = delete;
  StoreUpkeep& operator=(const StoreUpkeep&) = delete;

  const Counts& counts() const { return counts_; }
  const Scrubber& scrubber() const { return scrubber_; }
  const StoreClock& clock() const { return *clock_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  void Collect();
  // Checks one artifact. Returns false at the end of a pass or when the upkeep ends.
  bool Scrub();
  // Waits until `end`, and collects garbage whenever it is due. Returns false when the upkeep ends.
  bool WaitUntil(Clock::time_point end) ABSL_LOCKS_EXCLUDED(mutex_);

  const UpkeepOptions options_;
  const Logger& logger_;
  const std::shared_ptr<StoreClock> clock_;
  GarbageCollector collector_;
  Scrubber scrubber_;
  Counts counts_;
  Clock::time_point collect_at_;

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_STORE_UPKEEP_H_
