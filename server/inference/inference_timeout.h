// Reads the timeout, the only parameter of a ModelInfer request that phimap uses.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_TIMEOUT_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_TIMEOUT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/inference/inference_tensor.h"

namespace phimap {

// "timeout": an int64 or a uint64, in microseconds; 0 and none at all mean no timeout, which is
// infinite here. Triton defines it so, and its clients send it. INVALID_ARGUMENT for another type
// (PARAMETER_TYPE_MISMATCH) and a negative number (FIELD_OUT_OF_RANGE). Parameters of other names
// are passed over: standard clients always send some that mean nothing here.
absl::StatusOr<absl::Duration> TimeoutOf(const InferParameters& parameters);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_TIMEOUT_H_
