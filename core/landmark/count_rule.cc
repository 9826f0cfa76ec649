// landmarks=auto(residual=0.01): adds landmarks until the residual of the deciding rows is at most
// 0.01.
#include "core/landmark/count_rule.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/kernel/call_syntax.h"
#include "core/landmark/landmark_growth.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Maximum of the parameter `residual`, a share of K(x, x).
constexpr double kMaxResidual = 0.5;

// Number of rows from which on the largest of them bounds the 95 % quantile with confidence 95 %.
constexpr int64_t kFewestRows = 59;

// Returns a text such as "at 512 the 95 % quantile of ρ(x)/K(x, x) is at most 0.0097 with
// confidence 95 %, by number 962 in ascending order of the 1000 deciding rows". The 512 is the
// number of landmarks, and ρ(x) is the residual of row x.
std::string QuantileText(const LandmarkGrowth& growth) {
  if (growth.rank > growth.deciding_rows) {
    return absl::StrFormat("at %d the largest ρ(x)/K(x, x) of the %d deciding rows is %.3g",
                           growth.landmarks, growth.deciding_rows, growth.share);
  }
  return absl::StrFormat(
      "at %d the 95 %% quantile of ρ(x)/K(x, x) is at most %.3g with confidence 95 %%, by number "
      "%d in ascending order of the %d deciding rows",
      growth.landmarks, growth.share, growth.rank, growth.deciding_rows);
}

// Returns why the residual was not reached, and the remedy. Returns an empty text if it was
// reached.
absl::string_view LimitText(const CountTask& task, const LandmarkGrowth& growth) {
  switch (growth.end) {
    case LandmarkGrowth::End::kReached:
      return "";
    case LandmarkGrowth::End::kCandidates:
      return growth.landmarks == task.most
                 ? "the limit `most` was reached first; allow more landmarks or a larger residual"
                 : "the pool has no more rows; stream more rows, allow more pool_rows or a "
                   "larger residual";
    case LandmarkGrowth::End::kRank:
      return "no candidate adds to the span, because the residual of each is within the rank "
             "tolerance; serving_type=float64 has a smaller tolerance";
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
  } else if (growth.rank > growth.deciding_rows) {
    count.warning = absl::StrCat(
        "landmarks=auto(…) reached a residual of ", residual, " on the ", growth.deciding_rows,
        " deciding rows, a tenth of the pool, but a confidence of 95 % needs at least ",
        kFewestRows, "; stream more rows, or allow more pool_rows");
  }
  return count;
}

}  // namespace

static const CountRule kResidualRule = {
    .name = "auto",
    .goal = {.name = "residual",
             .absent = Parameter::Absent::kRequired,
             .least = 0,
             .largest = kMaxResidual,
             .above_least = true,
             .line = "largest 95 % quantile of ρ(x)/K(x, x) that is allowed, with confidence 95 %"},
    .line = "auto(residual=0.01) finds the number",
    // The residual is defined in φ-space, which only positive semidefinite kernels have.
    .needs_definite_kernel = true,
    .no_remote =
        "auto(…) would request kernel values without a known limit; give the number of landmarks",
    .find = FindCount,
    .work = WorkOfGrowth,
    .bytes = BytesOfGrowth,
};

const std::vector<const CountRule*>& CountRules() {
  static const std::vector<const CountRule*>& rules = *new std::vector<const CountRule*>{
      &kResidualRule,
  };
  return rules;
}

}  // namespace phimap
