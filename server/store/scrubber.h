// Compares stored artifacts with their digests, one after another, to find damage while a backup
// may still contain undamaged copies.
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

// Holds no lock and no transaction while it reads. Step may be called by one thread at a time;
// everything else is thread-safe.
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

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SCRUBBER_H_
