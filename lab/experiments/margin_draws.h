// Builds F2 or F3 on examples drawn from a distribution, and measures how much of the margin the
// features keep.
#ifndef PHIMAP_LAB_EXPERIMENTS_MARGIN_DRAWS_H_
#define PHIMAP_LAB_EXPERIMENTS_MARGIN_DRAWS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lab/experiments/margin_distributions.h"

namespace phimap::lab {

struct SpanOutcome {
  // Whether w_out of the proof is large: projecting w onto the span of the landmarks changes w·x by
  // more than γ/2 on a mass of x of more than ε.
  bool is_large = false;
  // Whether the projection of w onto the span has an error over ε at margin γ/2. As in the proof,
  // the margin is divided by the length ‖φ(x)‖.
  bool loses_margin = false;
};

// Builds F2 with `landmarks` independent examples as landmarks. Policy "given" takes the first
// examples of the stream, "uniform" draws them from a longer stream.
absl::StatusOr<SpanOutcome> DrawF2(const MarginDistribution& of, int64_t landmarks,
                                   const std::string& policy, uint64_t seed);

// Errors at margin γ/4 in the features of F3.
struct ProjectionOutcome {
  // by_w: the error of w. by_half: the error of w', which has half of the margin of w. The first
  // step of the proof guarantees no larger margin than half of it.
  double by_w = 0;
  double by_half = 0;
};

// Builds F3 with `landmarks` landmarks. REQUIRES: `of` has a w'.
absl::StatusOr<ProjectionOutcome> DrawF3(const MarginDistribution& of, int64_t landmarks,
                                         int64_t dimensions, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_MARGIN_DRAWS_H_
