// The builders of F1, F2 and F3, which make a plan from landmarks and a kernel. BBV stands for
// Balcan, Blum, Vempala 2006.
#ifndef PHIMAP_CORE_MAPPING_F1_F2_F3_LANDMARK_MAPPING_H_
#define PHIMAP_CORE_MAPPING_F1_F2_F3_LANDMARK_MAPPING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/tiles.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/builder_parts/landmark_factor.h"
#include "core/mapping/builder_parts/plan_pair.h"
#include "core/mapping/projection/random_projection.h"
#include "core/mapping/spec/family.h"
#include "core/plan/plan.h"

namespace phimap {

// Returns the share of BuildF2's and BuildF3's reported progress at which the Gram matrix is done.
double GramShare(const LandmarkTask& task);

// Builds F1, the similarities to the d landmarks x_1 … x_d: F1(x) = (K(x, x_1) … K(x, x_d)). Takes
// any kernel. Source: BBV section 3.
absl::StatusOr<BuiltMapping> BuildF1(const LandmarkTask& task);

// Builds F2, the orthogonal projection of φ(x) onto the span of the landmarks (BBV section 4):
//   F2(x) = k_r(x)·D_r^{-1/2}·L_r^{-T}
// k_r(x) has the kernel values of x with the r pivots among the landmarks. D_r has K(x, x) of each
// pivot on its diagonal, and L_r is the factor of the pivots' normalised Gram matrix. The
// factorization is a rank-truncated pivoted Cholesky (landmark_factor.h). A linear kernel is folded
// into one matrix. Errors: those of FactorLandmarks.
absl::StatusOr<BuiltMapping> BuildF2(const LandmarkTask& task, const TileControl& control);

// Builds F3, the features of F2 after a random projection to d3 = `dimensions` (BBV section 5): F3
// = F2·R/√d3. The matrix R is r×d3, where r is the number of features of F2. Its entries are
// independent, from N(0, 1) or ±1; entry (i, j) is element i·d3 + j of FillProjection. The weights
// of F2 and R are folded into one r×d3 matrix. REQUIRES: dimensions >= 1; the projection is not
// orthonormal.
absl::StatusOr<BuiltMapping> BuildF3(const LandmarkTask& task, const ProjectionTask& projection,
                                     const TileControl& control);

// Size of a builder's task, for forecasts.
struct LandmarkShape {
  int64_t landmarks = 0;
  // Number of columns after the input stage.
  int64_t columns = 0;
  // Maximum number of independent landmarks: min(landmarks, FeatureDimension).
  int64_t rank = 0;
  // F3 only.
  int64_t dimensions = 0;
  ProjectionKind projection = ProjectionKind::kGaussian;
  FloatType serving_type = FloatType::kFloat32;
  // Whether the kernel is linear, so that the plan is one matrix.
  bool linear = false;
  // Cost of a kernel value.
  ValueWork value;
  // Maximum number of threads that compute the landmarks' Gram matrix at the same time. Each holds
  // a tile.
  int threads = 1;
};

// Returns the shape of the builder's task for a mapping with landmarks.
LandmarkShape LandmarkShapeOf(const MappingShape& shape);

// Return cost and result sizes of each builder.
MappingCost CostOfF1(const LandmarkShape& shape);
MappingCost CostOfF2(const LandmarkShape& shape);
MappingCost CostOfF3(const LandmarkShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_F1_F2_F3_LANDMARK_MAPPING_H_
