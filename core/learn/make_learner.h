// From a spec to its learner.
#ifndef PHIMAP_CORE_LEARN_MAKE_LEARNER_H_
#define PHIMAP_CORE_LEARN_MAKE_LEARNER_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/learn/learner.h"
#include "core/learn/learner_spec.h"
#include "core/learn/row_map.h"

namespace phimap {

// What kernel learners compare raw rows with. Rows come as the kernel takes them: of a mapping that
// standardises, standardised.
struct KernelInput {
  // With every gamma resolved.
  std::optional<KernelExpression> kernel;
  // Explicit features of raw rows, for strategies of kernel_sgd that run on them.
  std::shared_ptr<const RowMap> map;
};

// INVALID_ARGUMENT: what spec.Validate says; a kernel or a map that the learner needs and `input`
// lacks (reason NO_KERNEL), a gamma that is not resolved (UNRESOLVED_GAMMA).
absl::StatusOr<std::unique_ptr<const Learner>> MakeLearner(const LearnerSpec& spec,
                                                           const KernelInput& input = {});

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_MAKE_LEARNER_H_
