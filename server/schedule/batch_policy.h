// Decisions of the scheduler, as pure functions: the batch that a free worker takes, when a request
// is refused and when it needs no worker.
#ifndef PHIMAP_SERVER_SCHEDULE_BATCH_POLICY_H_
#define PHIMAP_SERVER_SCHEDULE_BATCH_POLICY_H_

#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace phimap {

// Rows after which no further request joins a batch; a single request may have more. From 16 rows
// on the engine's speed no longer grows, so a longer take would only make its first request wait
// for its last.
inline constexpr int64_t kBatchRows = 64;
// Rows that a take is not cut below, so that workers share a queue: fewer do not fill the engine's
// registers, and each takes longer (102 µs for a row alone, 42 for each of four, with 2048
// landmarks).
inline constexpr int64_t kSharedBatchRows = 4;

// Number of requests that a free worker takes from the front of a queue, given the rows of each:
// the longest prefix of at most `max_rows` rows, and at least one request. There is no timer: later
// requests join the next batch. REQUIRES: the queue is not empty.
int64_t RequestsInBatch(absl::Span<const int64_t> queued_rows, int64_t max_rows);

// RequestsInBatch's `max_rows`, where `workers` share a queue of `queued_rows` rows: if one took
// all, the others would wait with the callers for its last row.
int64_t MaxRowsOfTake(int64_t queued_rows, int workers);

// Number of workers worth waking for a queue of this many requests and rows.
int64_t WorthwhileBatches(int64_t requests, int64_t rows);

// Time that `multiplications` take at the measured rate. Without a measured rate (0), at a rate
// that the slowest kernels reach on old machines.
absl::Duration ExpectedTime(double multiplications, double multiplications_per_second);

// Quantum of an event loop: the work that it computes by itself before it looks at its sockets
// again. A request that is expected to take longer goes to the pool, as does all further work when
// four times as much is staged.
inline constexpr absl::Duration kLoopQuantum = absl::Microseconds(250);

// Number of rows from which half of a batch is handed to a sleeping worker, even for a fast
// version. A smaller batch may be finished before the worker is awake.
inline constexpr int64_t kHandOverRows = 8;

// Whether a request that an event loop could compute is left to a worker that sleeps: one of as
// many rows as keep the engine at its speed, while the loop has answers of the same call to send.
bool WorthAWorker(int64_t rows, bool others_under_way);

// Whether half of a batch of an event loop is worth waking a worker: that many rows, or more than
// four whose half takes longer than the waking (16 callers over TLS with 2,048 landmarks: a fifth
// more calls/s).
bool WorthHalving(int64_t rows, absl::Duration expected);

// Quantum of a worker: the time for which tiles of one request keep it while others wait. The rest
// of the request then goes to the end of the queue. The quantum does not divide requests of a tile
// or two, and a single row waits for each worker no longer than this, however large the requests
// before it are.
inline constexpr absl::Duration kWorkerQuantum = absl::Milliseconds(10);

// Whether a request of several tiles returns its worker after the current tile.
bool EndsTurn(bool others_wait, absl::Duration computed_this_turn);

// Rows of a tile, after which cancellation and deadline are checked again: about 64 million
// multiplications, a few milliseconds of one core, in whole blocks of 64 rows and at least one
// block, so that several requests of a batch fit in one tile.
int64_t TileRows(int64_t multiplications_per_row);

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_BATCH_POLICY_H_
