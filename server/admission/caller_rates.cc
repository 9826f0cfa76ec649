#include "server/admission/caller_rates.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

struct Kind {
  absl::string_view name;
  // The time that a limit is about, in words, and as much as can be saved up.
  absl::string_view period_word;
  int64_t period_ns;
};

// The largest cost of a request: a year, which a sum of times still holds.
constexpr double kMostNs = 3.15e16;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr std::array<Kind, kRatedKinds> kKinds = {{
    {"calls", "a second", kSecondNs},
    {"rows", "a second", kSecondNs},
    {"builds", "an hour", 3600 * kSecondNs},
}};

const Kind& KindOf(Rated kind) { return kKinds[static_cast<size_t>(kind)]; }

absl::Status RateReached(Rated kind, int64_t limit, int64_t wait_ns) {
  const Kind& facts = KindOf(kind);
  const int64_t wait_ms = wait_ns / 1'000'000 + 1;
  return MakeError(absl::StatusCode::kResourceExhausted, reason::kCallerRateReached, "",
                   absl::StrCat("this caller may send ", limit, " ", facts.name, " ",
                                facts.period_word, " (", facts.name, "=", limit,
                                " in the server's token file); try again in ", wait_ms, " ms"),
                   {{"limit", absl::StrCat(limit)},
                    {"limited", std::string(facts.name)},
                    {"period_seconds", absl::StrCat(facts.period_ns / kSecondNs)}},
                   wait_ms);
}

}  // namespace

absl::string_view RatedName(Rated kind) { return KindOf(kind).name; }

CallerRates::CallerRates(const RateLimits& limits) : limits_(limits) {
  for (size_t kind = 0; kind < limits.of.size(); ++kind) {
    if (!limits.of[kind].has_value()) continue;
    cost_ns_[kind] =
        static_cast<double>(kKinds[kind].period_ns) / static_cast<double>(*limits.of[kind]);
  }
}

absl::Status CallerRates::Take(Rated kind, int64_t count, absl::Time now) {
  if (!limits(kind) || count <= 0) return absl::OkStatus();
  const auto index = static_cast<size_t>(kind);
  const int64_t period_ns = kKinds[index].period_ns;
  const double exact_ns = cost_ns_[index] * static_cast<double>(count);
  const auto cost_ns = static_cast<int64_t>(std::min(exact_ns, kMostNs) + .5);
  const int64_t now_ns = absl::ToUnixNanos(now);
  std::atomic<int64_t>& full_at_ns = full_at_ns_[index];
  int64_t before_ns = full_at_ns.load(std::memory_order_relaxed);
  while (true) {
    const int64_t begin_ns = std::max(before_ns, now_ns);
    // A request may wait until everything is saved up, but not for more.
    const int64_t earliest_ns = begin_ns + std::min(cost_ns, period_ns) - period_ns;
    if (now_ns < earliest_ns) return RateReached(kind, *limits_.of[index], earliest_ns - now_ns);
    if (full_at_ns.compare_exchange_weak(before_ns, begin_ns + cost_ns,
                                         std::memory_order_relaxed)) {
      return absl::OkStatus();
    }
  }
}

}  // namespace phimap
