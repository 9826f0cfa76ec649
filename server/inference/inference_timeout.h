// The timeout of a ModelInfer request, the only parameter that has a meaning here.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_TIMEOUT_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_TIMEOUT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/inference/inference_tensor.h"

namespace phimap {

// Returns the parameter "timeout", an int64 or a uint64 in microseconds, as Triton defines it and
// its clients send it. Returns an infinite duration if it is 0 or absent. INVALID_ARGUMENT for
// another type (PARAMETER_TYPE_MISMATCH) or a negative number (FIELD_OUT_OF_RANGE). Ignores other
// parameters, because standard clients always send some that mean nothing here.
absl::StatusOr<absl::Duration> TimeoutOf(const InferParameters& parameters);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_TIMEOUT_H_
