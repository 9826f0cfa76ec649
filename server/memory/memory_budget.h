// The memory that unfinished builds, imports and evaluations may take together.
#ifndef PHIMAP_SERVER_MEMORY_MEMORY_BUDGET_H_
#define PHIMAP_SERVER_MEMORY_MEMORY_BUDGET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "prometheus/gauge.h"
#include "server/sync/mutex.h"

namespace phimap {

// Thread-safe. Outlives its reservations.
class MemoryBudget {
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
    ~Reservation();

   private:
    friend class MemoryBudget;
    Reservation(MemoryBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}

    MemoryBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  MemoryBudget(int64_t max_bytes, prometheus::Gauge* reserved)
      : max_bytes_(max_bytes), gauge_(reserved) {}
  // At most half of `whole`, from which it takes: for users that must leave capacity for others,
  // and are called `who` in errors. `whole` outlives it.
  MemoryBudget(MemoryBudget& whole, absl::string_view who);

  // RESOURCE_EXHAUSTED (reason BUILD_MEMORY_FULL) with both numbers and the limit; with a retry
  // delay if the bytes would fit once the present work is finished.
  absl::StatusOr<Reservation> Reserve(int64_t bytes);
  // Adds to a reservation of this budget, or makes an empty one. Returns the errors of Reserve for
  // its new total; its present bytes are not counted against it twice.
  absl::Status Grow(Reservation& reservation, int64_t bytes);
  // Error for a need that can never be met, without a delay: for callers that know before they
  // begin that they need `bytes` or more.
  absl::Status CheckEverFits(int64_t bytes) const;

 private:
  absl::Status GrowWithin(Reservation& reservation, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  const int64_t max_bytes_;
  // Set for a half only.
  MemoryBudget* const whole_ = nullptr;
  const std::string who_;
  prometheus::Gauge* const gauge_ = nullptr;
  Mutex mutex_;
  int64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_MEMORY_BUDGET_H_
