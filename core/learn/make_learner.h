// Makes the learner of a spec.
#ifndef PHIMAP_CORE_LEARN_MAKE_LEARNER_H_
#define PHIMAP_CORE_LEARN_MAKE_LEARNER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/learn/learner.h"
#include "core/learn/learner_spec.h"
#include "core/learn/learner_type.h"

namespace phimap {

// Returns INVALID_ARGUMENT if `input` lacks a kernel or a map that the learner needs (reason
// KERNEL_NOT_AVAILABLE), or if a gamma of the kernel is not resolved (GAMMA_UNRESOLVED).
absl::StatusOr<std::unique_ptr<const Learner>> MakeLearner(const LearnerSpec& spec,
                                                           const KernelInput& input = {});

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_MAKE_LEARNER_H_
