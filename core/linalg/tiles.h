// Work that is cut into tiles, on several threads.
#ifndef PHIMAP_CORE_LINALG_TILES_H_
#define PHIMAP_CORE_LINALG_TILES_H_

#include <cstdint>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/linalg/work.h"

namespace phimap {

// Supplies the number of threads that may work at the moment, and a checkpoint that may stop the
// work. A callable that fits Checkpoint converts to a TileControl with one thread. Holds only
// references to the two callables, as Checkpoint does.
class TileControl {
 public:
  using Threads = absl::FunctionRef<int()>;

  TileControl(Threads threads, Checkpoint checkpoint)
      : threads_(threads), checkpoint_(checkpoint) {}
  template <typename F,
            typename = std::enable_if_t<std::is_invocable_r_v<absl::Status, F&, double>>>
  TileControl(F&& checkpoint)  // NOLINT(google-explicit-constructor)
      : threads_(OneThread), checkpoint_(checkpoint) {}

  // Returns the number of threads, at least 1. A result never depends on this number.
  int threads() const { return threads_(); }
  Threads threads_ref() const { return threads_; }
  absl::Status operator()(double fraction) const { return checkpoint_(fraction); }

 private:
  static int OneThread() { return 1; }

  Threads threads_;
  Checkpoint checkpoint_;
};

// Runs work(i) once for each tile i, 0 <= i < tiles, on at most `threads` threads. The caller's
// thread is one of them. Returns when all tiles are done. Tiles begin in order, but any thread may
// run any tile. If the result of each tile depends on that tile alone, the bits are therefore the
// same for any number of threads.
//
// The caller's thread calls `checkpoint` before each tile that it runs, with the share of the tiles
// that have begun. No tile begins during this call, so a checkpoint that waits leaves the machine
// to other work. If its status is not OK, no further tile begins. The function then waits for the
// running tiles and returns the status.
//
// Threads:    started and joined within the call, which costs about 20 µs for each. With one thread
//             or one tile, no thread is started. If the system cannot start all threads, fewer run.
// Exceptions: those of `work`, such as std::bad_alloc, reach the caller.
absl::Status ForEachTile(int threads, int64_t tiles, Checkpoint checkpoint,
                         absl::FunctionRef<void(int64_t tile)> work);

// Cuts 0 … total − 1 into ranges of `size` numbers, the last of which may be shorter, and runs each
// range as a tile.
absl::Status ForEachRange(int64_t total, int64_t size, const TileControl& control,
                          absl::FunctionRef<void(int64_t begin, int64_t count)> work);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_TILES_H_
