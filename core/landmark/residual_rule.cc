// landmarks=auto(residual=0.01): as many landmarks as the residual of deciding rows asks for.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/kernel/call_syntax.h"
#include "core/landmark/count_rule.h"
#include "core/landmark/landmark_growth.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// A share of K(x, x).
constexpr double kMaxResidual = 0.5;

// Returns "at 512 the 95 % quantile of ρ(x)/K(x, x) over the 1000 rows that decide is 0.0097".
std::string QuantileText(const LandmarkGrowth& growth) {
  return absl::StrFormat(
      "at %d the 95 %% quantile of ρ(x)/K(x, x) over the %d rows that decide is %.3g",
      growth.landmarks, growth.deciding_rows, growth.quantile_95);
}

// Empty if the residual was reached.
absl::string_view LimitText(const CountTask& task, const LandmarkGrowth& growth) {
  switch (growth.end) {
    case LandmarkGrowth::End::kReached:
      return "";
    case LandmarkGrowth::End::kCandidates:
      return growth.landmarks == task.most
                 ? "`most` came first, so allow more landmarks or a larger residual"
                 : "the pool has no more rows, so stream more rows, allow more pool_rows or a "
                   "larger residual";
    case LandmarkGrowth::End::kRank:
      return "nothing is left to add, because the rest of each of these rows is within the rank "
             "tolerance; serving_type=float64 has a smaller one";
  }
  PHIMAP_CHECK(false);
}

absl::StatusOr<LandmarkCount> FindCount(const CountTask& task, const TileControl& control) {
  PHIMAP_ASSIGN_OR_RETURN(const LandmarkGrowth growth, GrowLandmarks(task, control));
  const std::string residual = NumberToText(task.goal);
  const std::string quantile = QuantileText(growth);
  LandmarkCount count = {.landmarks = growth.landmarks,
                         .how = absl::StrCat("adds ", kGrowthBlock, " at a time until ", residual,
                                             " is reached: ", quantile),
                         .warning = ""};
  if (const absl::string_view limit = LimitText(task, growth); !limit.empty()) {
    count.warning = absl::StrCat("landmarks=auto(…) did not reach a residual of ", residual, ": ",
                                 quantile, "; ", limit);
  }
  return count;
}

}  // namespace

extern const CountRule kResidualRule;
const CountRule kResidualRule = {
    .name = "auto",
    .goal = {.name = "residual",
             .absent = Parameter::Absent::kRequired,
             .least = 0,
             .largest = kMaxResidual,
             .above_least = true,
             .line = "95 % quantile of ρ(x)/K(x, x) that is allowed"},
    .line = "auto(residual=0.01) finds the number",
    // The residual is defined in φ-space, which only positive semidefinite kernels have.
    .needs_definite_kernel = true,
    .no_remote = "auto(…) asks for values until they suffice; give a number",
    .find = FindCount,
    .work = WorkOfGrowth,
    .bytes = BytesOfGrowth,
};

}  // namespace phimap
