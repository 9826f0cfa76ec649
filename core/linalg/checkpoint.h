// Lets long work report its progress and learn that it should stop.
#ifndef PHIMAP_CORE_LINALG_CHECKPOINT_H_
#define PHIMAP_CORE_LINALG_CHECKPOINT_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace phimap {

// Called between tiles with the share of the work that is done (0..1). The call may block to let
// more urgent work run first. A status other than OK ends the work, which returns that status.
using Checkpoint = absl::FunctionRef<absl::Status(double fraction)>;

// For callers that neither follow the progress nor stop the work.
inline absl::Status NeverStop(double) { return absl::OkStatus(); }

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_CHECKPOINT_H_
