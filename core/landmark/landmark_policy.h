// A landmark policy decides which rows of a stream become landmarks. A LandmarkPolicy describes
// one.
#ifndef PHIMAP_CORE_LANDMARK_LANDMARK_POLICY_H_
#define PHIMAP_CORE_LANDMARK_LANDMARK_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_work.h"
#include "core/landmark/reservoir.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"
#include "core/plan/plan.h"

namespace phimap {

struct LandmarkChoiceTask {
  int64_t landmarks = 0;
  uint64_t seed = 0;
  // The kernel with all parameters resolved.
  const KernelExpression& kernel;
  // The stage that standardises, or an empty stage.
  const InputStage& input;
  const Reservoir& reservoir;
  // Slots of the pool that may become landmarks.
  const std::vector<int64_t>& pool;
  // Whether the input stage may shift rows.
  bool shifts = true;
  // The first rows of the stream, if the policy uses them.
  ConstMatrixView<double> given;
  // Returns the number of threads that may be used at the moment.
  absl::FunctionRef<int()> threads;
};

struct LandmarkChoice {
  // The landmarks before the input stage.
  Matrix<double> rows;
  // The share of the pool's kernel that the chosen rows do not explain: tr(K − K̂)/tr(K) over the
  // pool, where K̂ is the part of K that they explain. Set only if the policy computes it anyway.
  std::optional<double> pool_trace_residual;
};

// Sizes of a pool from which landmarks are chosen, for forecasts.
struct LandmarkPoolShape {
  int64_t rows = 0;
  int64_t landmarks = 0;
  // Number of columns before the input stage, and after it (seen_columns).
  int64_t columns = 0;
  int64_t seen_columns = 0;
  // Work of a kernel value.
  ValueWork value;
};

// Descriptor of a policy. Each policy is defined in a file of its own and listed in
// landmark_policy.cc.
struct LandmarkPolicy {
  // Name in text forms, such as "uniform".
  absl::string_view name;
  // Description, for people.
  absl::string_view line;
  // Why the policy refuses kernels of strings (no_strings) and remote kernels (no_remote), as part
  // of the error message. Empty if the policy accepts them.
  absl::string_view no_strings;
  absl::string_view no_remote;
  // Why the policy refuses kernels whose values jump where rows become equal, in the same form.
  absl::string_view no_jumps;
  // Whether the policy itself requires a kernel that is known to be positive semidefinite, even if
  // the mapping does not.
  bool needs_definite_kernel = false;
  // Whether the landmarks are the first rows of the stream. These rows are then not used for
  // anything else.
  bool takes_first_rows = false;
  // Whether `choose` holds the pool as a dense matrix, and a copy of it after the input stage.
  bool copies_pool = false;
  // The reason why the policy cannot be used with a rule that finds the number of landmarks
  // (CountRule). It is part of the error message, and empty if the policy can be used with rules.
  //
  // A rule keeps the first n of the chosen landmarks. So a policy that accepts rules must choose
  // rows in such an order that the first n are a valid choice of n landmarks.
  absl::string_view no_count_rule;
  // Whether the margin theorems, which are proven for uniform landmarks, hold for this policy.
  bool carries_margin_theorems = false;
  // Text for the certificate of mappings whose own theorem does not hold with this policy: the
  // policy's theorem, or the reason why there is none.
  absl::string_view theorem;
  // Whether the policy's theorem holds for the rows of the pool. If not, the certificate does not
  // state for which rows it holds.
  bool theorem_is_of_pool = false;

  // Returns the size to which the policy reduces a default pool of `rows` rows. Null if the policy
  // does not reduce it.
  int64_t (*default_pool)(int64_t landmarks, int64_t rows) = nullptr;
  // Work of `choose`, and its memory. Null if they are negligible.
  Work (*work)(const LandmarkPoolShape& shape) = nullptr;
  int64_t (*bytes)(const LandmarkPoolShape& shape) = nullptr;
  // Chooses the landmarks. FAILED_PRECONDITION (ROWS_TOO_FEW) if the pool has fewer rows than
  // landmarks. The result depends on the task but not, even in the last bit, on `threads`.
  absl::StatusOr<LandmarkChoice> (*choose)(const LandmarkChoiceTask& task,
                                           Checkpoint checkpoint) = nullptr;
};

// Sets the stage's shift to the mean of `rows`. Distances between shifted rows lose fewer digits.
// Only for translation-invariant kernels.
void CentreOn(ConstMatrixView<double> rows, InputStage& input);

// Returns all policies, the default first.
absl::Span<const LandmarkPolicy* const> LandmarkPolicies();
const LandmarkPolicy& DefaultLandmarkPolicy();
// Returns the names of the policies for which `holds` is true, such as "uniform, rpcholesky or d2".
// There must be at least one.
std::string ListOfPolicies(absl::FunctionRef<bool(const LandmarkPolicy&)> holds);
// Returns the names of all policies, in the order of LandmarkPolicies.
absl::Span<const absl::string_view> LandmarkPolicyNames();

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_POLICY_H_
