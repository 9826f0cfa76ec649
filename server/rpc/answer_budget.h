// The memory of answers that are computed and not sent yet.
//
// The time that they take to be sent is measured here too.
//
// The scheduler bounds what is queued and computed; a client that does not fetch its answers keeps
// them for as long as it likes, and many such clients would keep any amount. So a request is let in
// only while the answers before it leave room for its own. Those that were let in meanwhile may
// come on top of the limit, at most what the scheduler holds: the two limits bound the sum.
#ifndef PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_
#define PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/observe/transform_metrics.h"
#include "server/schedule/room_watch.h"

namespace phimap {

// Thread-safe, lock-free. Outlives what it holds.
class AnswerBudget {
 public:
  // An answer on its way: its bytes count from its features on until its destruction, which calls
  // those who wait for room: no lock of theirs may be held.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept { *this = std::move(other); }
    Held& operator=(Held&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      std::swap(computed_, other.computed_);
      return *this;
    }
    ~Held() {
      if (budget_ != nullptr) budget_->Return(*this);
    }

   private:
    friend class AnswerBudget;
    Held(AnswerBudget* budget, int64_t bytes)
        : budget_(budget), bytes_(bytes), computed_(absl::Now()) {}

    AnswerBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
    absl::Time computed_;
  };

  // `metrics` and `room` outlive the budget; `room` is told of each answer that is gone.
  AnswerBudget(int64_t max_bytes, const TransformMetrics& metrics, RoomWatch& room)
      : max_bytes_(max_bytes), metrics_(metrics), room_(room) {}

  // Whether a request may begin whose answer takes `bytes`: RESOURCE_EXHAUSTED (reason
  // ANSWERS_FULL, a retry delay) when those on their way leave no room for it. What alone exceeds
  // the budget is let in when there are none: messages have a limit of their own.
  absl::Status CheckRoom(int64_t bytes) const;
  // Holds an answer of `bytes` whose features are there now.
  Held Hold(int64_t bytes);

  int64_t held_bytes() const { return held_.load(); }

 private:
  void Return(const Held& answer);

  const int64_t max_bytes_;
  const TransformMetrics& metrics_;
  RoomWatch& room_;
  std::atomic<int64_t> held_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_
