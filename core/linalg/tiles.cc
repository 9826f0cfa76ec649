#include "core/linalg/tiles.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/thread/start_thread.h"

namespace phimap {
namespace {

// The tiles of one call. Each thread takes its next tile from here.
class Tiles {
 public:
  Tiles(int64_t count, absl::FunctionRef<void(int64_t)> work) : count_(count), work_(work) {}

  // Takes tiles until none is left. `before` is called, under the lock, before each.
  template <typename Before>
  void Run(const Before& before) {
    while (true) {
      int64_t tile;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (next_ == count_) return;
        if (!before(next_)) {
          next_ = count_;
          return;
        }
        tile = next_++;
      }
      RunOne(tile);
    }
  }

  // Runs tile 0, which no call of Run takes.
  void RunFirst() { RunOne(0); }

  // REQUIRES: all threads have ended.
  void RethrowFailure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void RunOne(int64_t tile) {
    try {
      work_(tile);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failure_ = std::current_exception();
      next_ = count_;
    }
  }

  const int64_t count_;
  const absl::FunctionRef<void(int64_t)> work_;
  std::mutex mutex_;
  // Guarded by mutex_.
  int64_t next_ = 1;
  std::exception_ptr failure_;
};

}  // namespace

absl::Status ForEachTile(int threads, int64_t tiles, Checkpoint checkpoint,
                         absl::FunctionRef<void(int64_t tile)> work) {
  if (tiles <= 0) return absl::OkStatus();
  // This thread has the first tile, or the helpers could do them all before it asks whether to
  // stop.
  absl::Status status = checkpoint(0);
  if (!status.ok()) return status;
  Tiles todo(tiles, work);
  std::vector<std::thread> helpers;
  const int64_t wanted = std::min<int64_t>(threads, tiles) - 1;
  helpers.reserve(static_cast<size_t>(std::max<int64_t>(wanted, 0)));
  for (int64_t i = 0; i < wanted; ++i) {
    std::optional<std::thread> helper =
        TryStartThread([&] { todo.Run([](int64_t) { return true; }); });
    if (!helper.has_value()) break;  // the others do the work
    helpers.push_back(*std::move(helper));
  }
  todo.RunFirst();
  todo.Run([&](int64_t tile) {
    status = checkpoint(static_cast<double>(tile) / static_cast<double>(tiles));
    return status.ok();
  });
  for (std::thread& helper : helpers) helper.join();
  todo.RethrowFailure();
  return status;
}

absl::Status ForEachRange(int64_t total, int64_t size, const TileControl& control,
                          absl::FunctionRef<void(int64_t begin, int64_t count)> work) {
  return ForEachTile(control.threads(), (total + size - 1) / size, control,
                     [&](int64_t tile) { work(tile * size, std::min(size, total - tile * size)); });
}

}  // namespace phimap
