// How often a caller may call, and how many rows and builds it may send: rates of this server,
// which it may save up for a short while.
#ifndef PHIMAP_SERVER_ADMISSION_CALLER_RATES_H_
#define PHIMAP_SERVER_ADMISSION_CALLER_RATES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// What is limited by rate.
enum class Rated {
  // Calls of any method, a second.
  kCalls,
  // Rows of Transform, Predict, Evaluate and the inference protocol, a second.
  kRows,
  // Builds, trainings, evaluations and imports, an hour.
  kBuilds,
};
inline constexpr int kRatedKinds = 3;

// The limit of each kind, by its number. Null: no limit.
struct RateLimits {
  std::array<std::optional<int64_t>, kRatedKinds> of = {};

  bool any() const {
    for (const std::optional<int64_t>& limit : of) {
      if (limit.has_value()) return true;
    }
    return false;
  }
  friend bool operator==(const RateLimits& a, const RateLimits& b) = default;
};

// Thread-safe.
class CallerRates {
 public:
  explicit CallerRates(const RateLimits& limits);

  // Takes `count` of a kind, or returns RESOURCE_EXHAUSTED (CALLER_RATE_REACHED) with the time
  // after which there is room again. What is not used is saved up, to as much as one second allows,
  // or one hour for builds. A single request for more than that is admitted once everything is
  // saved up, and the debt is paid off before the next.
  absl::Status Take(Rated kind, int64_t count, absl::Time now);
  bool limits(Rated kind) const { return limits_.of[static_cast<size_t>(kind)].has_value(); }
  const RateLimits& rates() const { return limits_; }

 private:
  const RateLimits limits_;
  // The time that one of a kind takes to come back, in nanoseconds; 0 without a limit.
  std::array<double, kRatedKinds> cost_ns_ = {};
  // The time at which everything is saved up again: in the future by the time that what was taken
  // takes to come back. In nanoseconds since 1970, because arithmetic with absl's times takes
  // longer than the rest of Take, which every call runs twice.
  std::array<std::atomic<int64_t>, kRatedKinds> full_at_ns_ = {};
};

// The word of the token file for a kind: "calls", "rows", "builds".
absl::string_view RatedName(Rated kind);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_CALLER_RATES_H_
