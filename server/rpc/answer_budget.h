// The memory that answers may take together, from when they are decided on until they are sent.
//
// The scheduler bounds what is queued and computed; a client that does not fetch its answers keeps
// them for as long as it likes, and many such clients would keep any amount.
#ifndef PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_
#define PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

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
      return *this;
    }
    ~Reservation() {
      if (budget_ != nullptr) budget_->reserved_.fetch_sub(bytes_);
    }
    int64_t bytes() const { return bytes_; }

   private:
    friend class AnswerBudget;
    Reservation(AnswerBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}

    AnswerBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  explicit AnswerBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // RESOURCE_EXHAUSTED (reason ANSWERS_FULL, a retry delay) when `bytes` more do not fit. What
  // alone exceeds the budget is let in when nothing else is: messages have a limit of their own.
  absl::StatusOr<Reservation> Reserve(int64_t bytes);

  int64_t reserved_bytes() const { return reserved_.load(); }

 private:
  const int64_t max_bytes_;
  std::atomic<int64_t> reserved_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_ANSWER_BUDGET_H_
