#include "core/linalg/tiles.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(TilesTest, EveryTileRunsOnce) {
  for (const int threads : {0, 1, 2, 5}) {
    for (const int64_t tiles : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tiles));
      const absl::Status status =
          ForEachTile(threads, tiles, NeverStop, [&](int64_t tile) { ++runs[tile]; });
      EXPECT_TRUE(status.ok());
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(TilesTest, RangesCoverEveryNumberOnce) {
  const auto threads = [] { return 3; };
  for (const int64_t total : {0, 1, 9, 10, 11, 100}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(total));
    const absl::Status status =
        ForEachRange(total, 10, {threads, NeverStop}, [&](int64_t begin, int64_t count) {
          EXPECT_EQ(begin % 10, 0);
          EXPECT_TRUE(count == 10 || begin + count == total);
          for (int64_t i = begin; i < begin + count; ++i) ++runs[i];
        });
    EXPECT_TRUE(status.ok());
    for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST(TilesTest, ThreadsWorkAtTheSameTime) {
  // Each of the three tiles waits for the other two. With fewer than three threads this would never
  // end.
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  std::set<std::thread::id> threads;
  const absl::Status status = ForEachTile(3, 3, NeverStop, [&](int64_t) {
    std::unique_lock<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
    ++arrived;
    changed.notify_all();
    changed.wait(lock, [&] { return arrived == 3; });
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(threads.size(), 3);
}

TEST(TilesTest, CheckpointRunsOnTheCallersThreadAndSeesProgress) {
  double last = -1;
  const std::thread::id caller = std::this_thread::get_id();
  const auto checkpoint = [&](double fraction) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_GT(fraction, last);
    EXPECT_LT(fraction, 1);
    last = fraction;
    return absl::OkStatus();
  };
  EXPECT_TRUE(ForEachTile(3, 1000, checkpoint, [](int64_t) {}).ok());
}

TEST(TilesTest, NoTileBeginsAfterTheCheckpointRefused) {
  for (const int threads : {1, 4}) {
    std::atomic<bool> refused = false;
    std::atomic<int> late = 0;
    int calls = 0;
    const auto checkpoint = [&](double) {
      if (++calls < 3) return absl::OkStatus();
      refused = true;
      return absl::CancelledError("stop");
    };
    // Helper threads wait inside of their tiles until the caller's checkpoint has returned its
    // error. Without this wait, they could process all tiles before the checkpoint is called.
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> begun = 0;
    const absl::Status status = ForEachTile(threads, 100, checkpoint, [&](int64_t) {
      if (refused) ++late;
      ++begun;
      while (std::this_thread::get_id() != caller && !refused) std::this_thread::yield();
    });
    EXPECT_EQ(status, absl::CancelledError("stop"));
    EXPECT_EQ(calls, 3);
    // Each helper may have taken a tile just before the refusal.
    EXPECT_LE(late, threads - 1);
    EXPECT_LE(begun, 2 + threads - 1);
  }
}

TEST(TilesTest, WhatATileThrowsComesToTheCaller) {
  for (const int threads : {1, 3}) {
    EXPECT_THROW((void)ForEachTile(threads, 50, NeverStop,
                                   [](int64_t tile) {
                                     if (tile == 7) throw std::bad_alloc();
                                   }),
                 std::bad_alloc);
  }
}

}  // namespace
}  // namespace phimap::testing
