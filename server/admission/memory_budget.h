// The memory that unfinished builds, imports and evaluations may take together.
#ifndef PHIMAP_SERVER_ADMISSION_MEMORY_BUDGET_H_
#define PHIMAP_SERVER_ADMISSION_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "prometheus/gauge.h"

namespace phimap {

// Thread-safe. Must outlive its reservations.
class MemoryBudget {
 public:
  // A share of the budget. The destructor gives it back.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reservation();

   private:
    friend class MemoryBudget;
    Reservation(MemoryBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}

    MemoryBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  MemoryBudget(int64_t max_bytes, prometheus::Gauge* reserved)
      : max_bytes_(max_bytes), gauge_(reserved) {}
  // Creates a budget of half of `whole`, for users that must leave capacity to others. Every
  // reservation in it is also a reservation in `whole`. `who` is what error messages call these
  // users. `whole` must outlive this budget.
  MemoryBudget(MemoryBudget& whole, absl::string_view who);

  // What is reserved stays, even if it is more than a new limit allows. REQUIRES: this budget is
  // not half of another.
  void SetMaxBytes(int64_t max_bytes) { max_bytes_.store(max_bytes); }
  int64_t max_bytes() const {
    return whole_ == nullptr ? max_bytes_.load() : whole_->max_bytes() / 2;
  }

  // Reserves memory. RESOURCE_EXHAUSTED (reason BUILD_MEMORY_FULL) names the bytes needed and the
  // limit. If the bytes would fit once the present work is finished, the error also names the bytes
  // that others hold, and has a retry delay.
  absl::StatusOr<Reservation> Reserve(int64_t bytes);
  // Adds to a reservation of this budget, or fills an empty one. Returns the errors of Reserve for
  // the new total, in which the bytes already reserved are not counted twice.
  absl::Status Grow(Reservation& reservation, int64_t bytes);
  // Returns the error of Reserve, without a retry delay, if `bytes` bytes can never be reserved.
  // For callers that know before they begin that they need at least `bytes`.
  absl::Status CheckEverFits(int64_t bytes) const;

 private:
  absl::Status GrowWithin(Reservation& reservation, int64_t bytes, int64_t limit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error of CheckEverFits.
  absl::Status NeverFits(int64_t bytes, int64_t limit) const;
  void Return(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Not used by a budget that is half of another one.
  std::atomic<int64_t> max_bytes_;
  // Set only for a budget that is half of another one.
  MemoryBudget* const whole_ = nullptr;
  const std::string who_;
  prometheus::Gauge* const gauge_ = nullptr;
  Mutex mutex_;
  int64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_MEMORY_BUDGET_H_
