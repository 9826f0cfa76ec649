// The memory that answers may take together, from when they are decided on until they are sent.
//
// The time that they take to be sent is measured here too.
//
// The scheduler bounds what is queued and computed; a client that does not fetch its answers keeps
// them for as long as it likes, and many such clients would keep any amount.
#ifndef PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_
#define PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/observe/transform_metrics.h"

namespace phimap {

// Thread-safe, lock-free. Outlives its reservations.
class AnswerBudget {
 public:
  // A share of the budget, given back on destruction.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      std::swap(computed_, other.computed_);
      return *this;
    }
    ~Reservation() {
      if (budget_ != nullptr) budget_->Return(*this);
    }
    // The features are there: from now on the answer is being sent.
    void Computed() { computed_ = absl::Now(); }
    int64_t bytes() const { return bytes_; }

   private:
    friend class AnswerBudget;
    Reservation(AnswerBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}

    AnswerBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
    absl::Time computed_ = absl::InfinitePast();
  };

  // `metrics` outlives the budget.
  AnswerBudget(int64_t max_bytes, const TransformMetrics& metrics)
      : max_bytes_(max_bytes), metrics_(metrics) {}

  // RESOURCE_EXHAUSTED (reason ANSWERS_FULL, a retry delay) when `bytes` more do not fit. What
  // alone exceeds the budget is let in when nothing else is: messages have a limit of their own.
  absl::StatusOr<Reservation> Reserve(int64_t bytes);

  int64_t reserved_bytes() const { return reserved_.load(); }

 private:
  void Return(const Reservation& reservation);

  const int64_t max_bytes_;
  const TransformMetrics& metrics_;
  std::atomic<int64_t> reserved_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_
