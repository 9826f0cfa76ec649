// Work that is cut into tiles, on several threads.
#ifndef PHIMAP_CORE_LINALG_TILES_H_
#define PHIMAP_CORE_LINALG_TILES_H_

#include <cstdint>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/linalg/checkpoint.h"

namespace phimap {

// Supplies the number of threads that may work at the moment, and a checkpoint that may stop the
// work. Converts from a callable that fits Checkpoint, with one thread. Holds references to both,
// as Checkpoint does.
class TileControl {
 public:
  using Threads = absl::FunctionRef<int()>;

  TileControl(Threads threads, Checkpoint checkpoint)
      : threads_(threads), checkpoint_(checkpoint) {}
  template <typename F,
            typename = std::enable_if_t<std::is_invocable_r_v<absl::Status, F&, double>>>
  TileControl(F&& checkpoint)  // NOLINT(google-explicit-constructor)
      : threads_(OneThread), checkpoint_(checkpoint) {}

  // At least 1. A result never depends on it.
  int threads() const { return threads_(); }
  Threads threads_ref() const { return threads_; }
  absl::Status operator()(double fraction) const { return checkpoint_(fraction); }

 private:
  static int OneThread() { return 1; }

  Threads threads_;
  Checkpoint checkpoint_;
};

// Runs work(i) once for each tile 0 <= i < tiles, on at most `threads` threads, the caller's
// included, and returns when all are done. Tiles begin in order; which thread takes one is left
// open, so a tile whose result depends on itself alone gives the same bits for any number of
// threads.
//
// `checkpoint` is called on the caller's thread before each tile that it takes, with the share of
// the tiles that were taken. No tile begins while it is called: work that it lets pass has the
// machine. When it is not OK no further tile begins, those under way end, and its status is
// returned.
//
// Threads:    started for the call and joined in it: about 20 µs each, nothing for one thread or
//             tile. Fewer run if the system cannot start more.
// Exceptions: those of `work`, such as std::bad_alloc, reach the caller.
absl::Status ForEachTile(int threads, int64_t tiles, Checkpoint checkpoint,
                         absl::FunctionRef<void(int64_t tile)> work);

// Runs over 0 … total − 1 in ranges of `size` numbers, the last one shorter: each is a tile.
absl::Status ForEachRange(int64_t total, int64_t size, const TileControl& control,
                          absl::FunctionRef<void(int64_t begin, int64_t count)> work);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_TILES_H_
