// The mapping of a version: its plans, and the findings of its builder.
#ifndef PHIMAP_CORE_MAPPING_BUILDER_PARTS_BUILT_MAPPING_H_
#define PHIMAP_CORE_MAPPING_BUILDER_PARTS_BUILT_MAPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/linalg/matrix.h"
#include "core/mapping/builder_parts/landmark_factor.h"
#include "core/mapping/builder_parts/plan_pair.h"

namespace phimap {

// The members of LandmarkFactor are set only for mappings with a factor (Family::has_factor).
struct BuiltMapping : PlanPair, LandmarkFactor {
  // Indices of the landmarks that the plan uses, in the plan's order.
  std::vector<int64_t> used;
  // Whether the tolerance of the serving type dropped directions of φ-space that the tolerance of
  // float64 would have kept.
  bool lost_rank = false;
  // Mean of K(x_i, x_j) over the landmarks; only for centred mappings.
  double gram_mean = 0;
  // The theorem, if its text depends on the results of the build. Otherwise empty; Family::theorem
  // then returns the text.
  std::string theorem;
  // Features of the held-out rows, from the plan as served; empty until the certificate was
  // measured, or if there are too few rows for that.
  Matrix<double> held_out_features;
  // Warnings to users of the mapping.
  std::vector<std::string> warnings;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILDER_PARTS_BUILT_MAPPING_H_
