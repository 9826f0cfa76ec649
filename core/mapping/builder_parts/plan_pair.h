// The two plans of a mapping: one as it is served, one without rounding to the serving type.
#ifndef PHIMAP_CORE_MAPPING_BUILDER_PARTS_PLAN_PAIR_H_
#define PHIMAP_CORE_MAPPING_BUILDER_PARTS_PLAN_PAIR_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// A plan in the serving type, and the same plan in float64.
struct PlanPair {
  Plan served;
  // Reference for the serving error, in float64.
  Plan reference;
};

// The feature and projection stages in float64, before they are rounded to the serving type.
struct StageNumbers {
  Matrix<double> rows;
  KernelProgram program;
  // One offset per row if the program reads offsets; otherwise empty.
  std::vector<double> offsets;
  // Replaces `rows` and `program` if it has coefficients.
  ExpansionFeatures<double> expansion;
  // Replaces `rows` and `program` if the kernel is remote.
  std::optional<RemoteFeatures> remote;
  // One number per feature, or empty.
  std::vector<double> centre;
  // The projection: at most one of these two is set. If both are empty, there is no projection.
  Matrix<double> upper_triangle;  // r×r; entries below the diagonal are ignored
  Matrix<double> dense;           // features × outputs
  // K(a, a) of each row, for bounds on the rounding of features. Only with `upper_triangle`.
  std::vector<double> self_values;
  // Whether `dense` is stored without its zeros.
  bool sparse = false;
};

// Common input of all builders.
struct ServedAs {
  // Input stage of the plan.
  const InputStage& input;
  FloatType serving_type = FloatType::kFloat32;
};

// Rounds each number to `type` and back to float64, which gives the values that will be served.
Matrix<double> RoundedTo(FloatType type, ConstMatrixView<double> from);

// Returns a copy of `block` with only the examples in `which`, in that order.
RemoteFeatures WithExamples(const RemoteFeatures& block, const std::vector<int64_t>& which);

// Fills in both plans. With the kernel precomputed(), requests carry kernel values, so the input
// has one column per example of the stage. FAILED_PRECONDITION (VALUE_NOT_REPRESENTABLE, field
// "serving_type") if a number does not fit into the serving type.
absl::Status EmitPlans(const ServedAs& as, const StageNumbers& stages, PlanPair& plans);

// Returns the error of EmitPlans. Builders return it if they find an overflow before they call
// EmitPlans.
absl::Status NotRepresentable(FloatType type, absl::string_view what);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILDER_PARTS_PLAN_PAIR_H_
