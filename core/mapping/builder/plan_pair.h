// A mapping as two plans: one in the serving type, one without rounding to it.
#ifndef PHIMAP_CORE_MAPPING_BUILDER_PLAN_PAIR_H_
#define PHIMAP_CORE_MAPPING_BUILDER_PLAN_PAIR_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// A plan in the serving type, and the same plan without rounding to that type.
struct PlanPair {
  Plan served;
  // In float64; the reference for the serving error.
  Plan reference;
};

// The feature and projection stages in float64, before they are rounded to the serving type.
struct StageNumbers {
  Matrix<double> rows;
  KernelProgram program;
  // One for each row if the program reads them.
  std::vector<double> offsets;
  // In place of rows and program, if it has coefficients.
  ExpansionFeatures<double> expansion;
  // In place of rows and program, if the kernel is remote.
  std::optional<RemoteFeatures> remote;
  // One for each feature, or empty.
  std::vector<double> centre;
  // At most one of the two is set. If both are empty there is no projection.
  Matrix<double> upper_triangle;  // r×r, what lies below the diagonal is ignored
  Matrix<double> dense;           // features × outputs
  // With `upper_triangle`: K(a, a) of each row, which bounds of the features' rounding go by.
  std::vector<double> self_values;
  // Whether `dense` is stored without its zeros.
  bool sparse = false;
};

// Common input of all builders.
struct ServedAs {
  // The input stage that the plan gets.
  const InputStage& input;
  FloatType serving_type = FloatType::kFloat32;
};

// Each number rounded to `type` and back: the values that will be served.
Matrix<double> RoundedTo(FloatType type, ConstMatrixView<double> from);

// The block with these of its examples, in this order.
RemoteFeatures WithExamples(const RemoteFeatures& block, const std::vector<int64_t>& which);

// Fills in both plans. A row of values that come with the request has one for each example.
// FAILED_PRECONDITION (VALUE_NOT_REPRESENTABLE, field "spec.serving_type") when a number does not
// fit into the serving type.
absl::Status EmitPlans(const ServedAs& as, const StageNumbers& stages, PlanPair& plans);

// The error of EmitPlans, for overflow that a builder finds earlier.
absl::Status NotRepresentable(FloatType type, absl::string_view what);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILDER_PLAN_PAIR_H_
