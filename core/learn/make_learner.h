// Makes the learner of a spec.
#ifndef PHIMAP_CORE_LEARN_MAKE_LEARNER_H_
#define PHIMAP_CORE_LEARN_MAKE_LEARNER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/learn/learner.h"
#include "core/learn/learner_spec.h"
#include "core/learn/learner_type.h"

namespace phimap {

// INVALID_ARGUMENT: a kernel or a map that the learner needs and `input` lacks (reason
// KERNEL_NOT_AVAILABLE), a gamma that is not resolved (GAMMA_UNRESOLVED).
absl::StatusOr<std::unique_ptr<const Learner>> MakeLearner(const LearnerSpec& spec,
                                                           const KernelInput& input = {});

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_MAKE_LEARNER_H_
