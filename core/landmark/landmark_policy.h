// Descriptor of a landmark policy, the rule by which landmarks are made from rows of the stream.
#ifndef PHIMAP_CORE_LANDMARK_LANDMARK_POLICY_H_
#define PHIMAP_CORE_LANDMARK_LANDMARK_POLICY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_work.h"
#include "core/landmark/reservoir.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"
#include "core/plan/plan.h"

namespace phimap {

struct LandmarkChoiceTask {
  int64_t landmarks = 0;
  uint64_t seed = 0;
  // All parameters resolved.
  const KernelExpression& kernel;
  // Input stage before centring on the landmarks: standardisation and projection, if any.
  const InputStage& input;
  const Reservoir& reservoir;
  // Slots of the pool that may become landmarks.
  const std::vector<int64_t>& pool;
  // Whether the input stage may have a shift.
  bool shifts = true;
  // The first rows of the stream, if the policy takes them (LandmarkPolicy::takes_first_rows).
  ConstMatrixView<double> given;
  // Returns the number of threads that may work now.
  absl::FunctionRef<int()> threads;
};

struct LandmarkChoice {
  // Landmarks before the input stage.
  Matrix<double> rows;
  // tr(K − K̂)/tr(K) over the pool, where K̂ is the approximation by the chosen rows; nullopt if
  // the policy does not compute it.
  std::optional<double> pool_trace_residual;
};

// Sizes of a pool and of the choice of landmarks from it, for forecasts.
struct LandmarkPoolShape {
  int64_t rows = 0;
  int64_t landmarks = 0;
  // Columns before and after the input stage.
  int64_t columns = 0;
  int64_t seen_columns = 0;
  // Cost of a kernel value.
  ValueWork value;
};

// Each policy is defined in a file of its own and listed in landmark_policies.h.
struct LandmarkPolicy {
  // Name in specs: "uniform".
  absl::string_view name;
  // Description for users.
  absl::string_view line;
  // Error messages for kernels of strings and for remote kernels, which name the expected policies.
  // Empty if the policy accepts such kernels.
  absl::string_view no_strings;
  absl::string_view no_remote;
  // The policy refuses a kernel that is known not to be positive semidefinite, even if the mapping
  // takes it.
  bool needs_definite_kernel = false;
  // Landmarks are the first rows of the stream, which are used for nothing else.
  bool takes_first_rows = false;
  // `choose` makes a dense copy of the pool, and another one after the input stage.
  bool copies_pool = false;
  // Error message for landmarks=auto(…). Growing requires that the first n of many chosen landmarks
  // are a valid choice of n. Empty if they are.
  absl::string_view no_growth;
  // Whether the mappings' theorems about margins hold. They are proven for uniform landmarks.
  bool carries_margin_theorems = false;
  // The policy's own theorem, or the reason why there is none. Used if `carries_margin_theorems` is
  // false.
  absl::string_view theorem;
  // Whether `theorem` holds for the rows of the pool. If not, the certificate names no rows.
  bool theorem_is_of_pool = false;

  // Returns the size to which a default pool of `rows` rows is cut. Null if it is not cut.
  int64_t (*default_pool)(int64_t landmarks, int64_t rows) = nullptr;
  // Work and memory of `choose`. Null if they are negligible.
  Work (*work)(const LandmarkPoolShape& shape) = nullptr;
  int64_t (*bytes)(const LandmarkPoolShape& shape) = nullptr;
  // Chooses the landmarks. FAILED_PRECONDITION (ROWS_TOO_FEW) if the pool has fewer rows than the
  // requested landmarks. The bits depend on the task, but not on `threads`.
  absl::StatusOr<LandmarkChoice> (*choose)(const LandmarkChoiceTask& task,
                                           Checkpoint checkpoint) = nullptr;
};

// Sets the stage's shift to the mean of `rows`, so that distances keep more digits. Only for
// kernels that do not depend on a shift.
void CentreOn(ConstMatrixView<double> rows, InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_POLICY_H_
