// Reads stored artifacts against their digests, one after another, to find damage while a backup
// may still have them.
#ifndef PHIMAP_SERVER_STORE_SCRUBBER_H_
#define PHIMAP_SERVER_STORE_SCRUBBER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/blobs.h"
#include "server/store/sql_database.h"
#include "server/sync/mutex.h"

namespace phimap {

// Holds no lock and no transaction while it reads. Step: one thread at a time; the rest is
// thread-safe.
class Scrubber {
 public:
  // Called with the bytes that are read next; false ends the step.
  using Pace = absl::FunctionRef<bool(int64_t bytes)>;
  static constexpr int64_t kPieceBytes = int64_t{256} << 10;

  struct Finding {
    // Empty at the end of a pass: the next step begins another.
    std::string digest;
    // OK, or why the artifact cannot be read whole.
    absl::Status status;
    // `pace` ended the step; the artifact is read again.
    bool stopped = false;
  };

  Scrubber(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs)
      : database_(std::move(database)), blobs_(std::move(blobs)) {}

  // Reads the next artifact that a version names, in the order of digests. Errors are those of the
  // database; faults of the artifact are in the finding.
  absl::StatusOr<Finding> Step(Pace pace) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Artifacts found damaged and not found whole since.
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

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SCRUBBER_H_
