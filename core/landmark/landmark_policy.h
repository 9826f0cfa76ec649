// A landmark policy: how rows of a stream become landmarks. One descriptor has everything about it.
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
  // The kernel with all parameters resolved.
  const KernelExpression& kernel;
  // Standardisation, or nothing.
  const InputStage& input;
  const Reservoir& reservoir;
  // Slots of the pool that may become landmarks.
  const std::vector<int64_t>& pool;
  // Whether the input stage may have a shift.
  bool shifts = true;
  // The first rows of the stream, where the policy takes those.
  ConstMatrixView<double> given;
  // Number of threads that may work at the moment.
  absl::FunctionRef<int()> threads;
};

struct LandmarkChoice {
  // Rows before the input stage.
  Matrix<double> rows;
  // tr(K − K̂)/tr(K) over the pool, where K̂ comes from the chosen rows, if choosing finds that
  // out.
  std::optional<double> pool_trace_residual;
};

// A pool that landmarks are to be chosen from, in numbers; for forecasts.
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
  // Name in texts: "uniform".
  absl::string_view name;
  // Description, for people.
  absl::string_view line;
  // Reasons to refuse kernels of strings, and remote kernels; empty: they are accepted.
  absl::string_view no_strings;
  absl::string_view no_remote;
  // The kernel must be known to be positive semidefinite, whatever the mapping takes.
  bool needs_definite_kernel = false;
  // Landmarks are the first rows of the stream, which are used for nothing else.
  bool takes_first_rows = false;
  // Choosing takes the pool as a dense matrix, and a copy of it after the input stage.
  bool copies_pool = false;
  // Reason to refuse a rule that finds the number of landmarks (CountRule), which takes the first
  // landmarks of a large choice as a small choice; empty: rules are accepted.
  absl::string_view no_count_rule;
  // The theorems about margins hold, which are proven for uniform landmarks.
  bool carries_margin_theorems = false;
  // For a policy without the mapping's theorem: its own theorem, or the reason why there is none.
  absl::string_view theorem;
  // The theorem holds for the pool's rows; else no rows are named.
  bool theorem_is_of_pool = false;

  // Cuts a default pool of `rows` rows; null: it stays.
  int64_t (*default_pool)(int64_t landmarks, int64_t rows) = nullptr;
  // Cost of choosing, and the memory that it holds; null: next to nothing.
  Work (*work)(const LandmarkPoolShape& shape) = nullptr;
  int64_t (*bytes)(const LandmarkPoolShape& shape) = nullptr;
  // FAILED_PRECONDITION (ROWS_TOO_FEW) where the pool has fewer rows than landmarks are asked for.
  // Bits depend on the task, but not on `threads`.
  absl::StatusOr<LandmarkChoice> (*choose)(const LandmarkChoiceTask& task,
                                           Checkpoint checkpoint) = nullptr;
};

// Makes the mean of `rows` the stage's shift. Distances keep more digits about it; only for kernels
// that do not see a shift.
void CentreOn(ConstMatrixView<double> rows, InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_POLICY_H_
