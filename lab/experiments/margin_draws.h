// Draws a map from a distribution, and measures what is left of the margin.
#ifndef PHIMAP_LAB_EXPERIMENTS_MARGIN_DRAWS_H_
#define PHIMAP_LAB_EXPERIMENTS_MARGIN_DRAWS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lab/experiments/margin_distributions.h"

namespace phimap::lab {

struct SpanOutcome {
  // The proof's w_out is large: w and its part in the span differ by more than γ/2 on a mass of
  // more than ε.
  bool is_large = false;
  // The part of w in the span has an error over ε at margin γ/2, with the lengths ‖φ(x)‖ as in the
  // proof.
  bool loses_margin = false;
};

// Draws F2 with `landmarks` independent examples as landmarks: the first of the stream with policy
// "given", drawn from the stream with "uniform".
absl::StatusOr<SpanOutcome> DrawF2(const MarginDistribution& of, int64_t landmarks,
                                   const std::string& policy, uint64_t seed);

// Errors at margin γ/4 in the features of F3.
struct ProjectionOutcome {
  // By w, and by w', which has half of the margin of w: the proof guarantees no more after its
  // first step.
  double by_w = 0;
  double by_half = 0;
};

// Draws F3 with `landmarks` landmarks. REQUIRES: `of` has a w'.
absl::StatusOr<ProjectionOutcome> DrawF3(const MarginDistribution& of, int64_t landmarks,
                                         int64_t dimensions, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_MARGIN_DRAWS_H_
