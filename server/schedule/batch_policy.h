// Decisions of the scheduler, as pure functions: which batch a free worker takes, when a sleeping
// worker is worth waking, and when long work lets other work go first.
#ifndef PHIMAP_SERVER_SCHEDULE_BATCH_POLICY_H_
#define PHIMAP_SERVER_SCHEDULE_BATCH_POLICY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/engine/engine.h"

namespace phimap {

// Maximum number of rows of a batch that has several requests; a single request may have more. The
// engine's speed does not grow beyond 16 rows. With a larger batch, the first request would only
// wait longer, until the last row is computed.
inline constexpr int64_t kBatchRows = 64;
// Minimum number of rows of a batch, if workers share a queue and enough rows wait. Fewer rows do
// not fill the engine's registers, so each row takes longer. With 2048 landmarks, a batch of one
// row takes 102 µs, and a batch of four rows takes 42 µs per row.
inline constexpr int64_t kSharedBatchRows = 4;

// Returns the number of requests that a free worker takes from the front of a queue. `queued_rows`
// has the number of rows of each queued request. The worker takes as many requests as fit into
// `max_rows` rows, and at least one. There is no timer: later requests join the next batch.
// REQUIRES: the queue is not empty.
int64_t RequestsInBatch(absl::Span<const int64_t> queued_rows, int64_t max_rows);

// Returns `max_rows` for RequestsInBatch, for a queue of `queued_rows` rows that `workers` share.
// The limit divides the rows among the workers. Without it, one worker could take all rows; the
// other workers would then be idle while all callers wait for the last row.
int64_t MaxRowsOfTake(int64_t queued_rows, int workers);

// Returns the number of workers that are worth waking for a queue of this many requests and rows.
int64_t WorthwhileBatches(int64_t requests, int64_t rows);

// Returns the time that `multiplications` take at the measured rate. Without a measured rate (0),
// assumes the rate of the slowest kernels on old machines.
absl::Duration ExpectedTime(double multiplications, double multiplications_per_second);

// Quantum of an event loop: the time that the loop may compute before it polls its sockets again. A
// request that is expected to take longer goes to the pool. Once four quanta of work are staged,
// all further work goes to the pool too.
inline constexpr absl::Duration kLoopQuantum = absl::Microseconds(250);

// If a batch has at least this many rows, half of it is handed to a sleeping worker, even for a
// fast version. A smaller batch may be finished before the worker is awake.
inline constexpr int64_t kHandOverRows = 8;

// Whether a sleeping worker should compute a request that an event loop could compute itself. This
// is so if two conditions hold: the request has at least kBatchRows rows, and the loop has other
// answers of the same call to send.
bool WorthAWorker(int64_t rows, bool others_under_way);

// Whether it is worth waking a worker for half of an event loop's batch. There are two cases. The
// batch has kHandOverRows rows or more; or it has more than kSharedBatchRows rows, and these are
// expected to take at least three times as long as it takes to wake a thread. With 16 callers over
// TLS and 2,048 landmarks, this rule gives a fifth more calls per second.
bool WorthHalving(int64_t rows, absl::Duration expected);

// Quantum of a worker: the time that a worker may compute tiles of one request while other requests
// wait. After that, the rest of the request goes to the end of the queue. The quantum is long
// enough for one or two tiles. So a worker takes the next request after about this time, however
// large the requests in progress are.
inline constexpr absl::Duration kWorkerQuantum = absl::Milliseconds(10);

// Whether a request of several tiles must leave its worker after the current tile.
bool QuantumIsOver(bool others_wait, absl::Duration computed);

// Returns the number of rows of a tile. Cancellation and deadline are checked after each tile. A
// tile has about 64 million multiplications, which take a few milliseconds on one core. It consists
// of whole blocks of 64 rows, at least one, so that several requests of a batch fit into one tile.
int64_t TileRows(int64_t multiplications_per_row);

// Measured computing speed of versions, the basis of the scheduler's estimates.
//
// The speed of one thread in multiplications per second, smoothed, for each version. Versions
// differ by a factor of more than ten: matrix products run at the speed of the vector unit, but
// distances that are computed without matrix products do not. Not thread-safe; the scheduler guards
// it.
class ComputeSpeed {
 public:
  // Records a batch of `engine` that took `seconds` > 0.
  void Learn(const std::shared_ptr<const Engine>& engine, double multiplications, double seconds);

  // Returns the median speed of the last nine batches of the version, or 0 before its first batch.
  // A mean would be distorted by a batch that the operating system interrupted. The speed decides
  // how long a request may occupy an RPC thread.
  double Of(const std::shared_ptr<const Engine>& engine) const;

 private:
  struct Entry {
    // Distinguishes a version from another one that was loaded at the same address later.
    std::weak_ptr<const Engine> engine;
    std::array<double, 9> recent;
    int batches = 0;
    double median = 0;
    void Add(double rate);
  };
  const Entry* Find(const std::shared_ptr<const Engine>& engine) const;

  // Entries of the versions that were live when a version was last added.
  std::unordered_map<const Engine*, Entry> entries_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_BATCH_POLICY_H_
