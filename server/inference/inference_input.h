// The input of a ModelInfer request → RowsView, checked and not copied.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_INPUT_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_INPUT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/rows.h"
#include "inference/inference_service.pb.h"
#include "server/registry/version_handle.h"

namespace phimap {

// Path of the rows in the request. There is one input, and its name is the better index.
inline constexpr char kInputField[] = "inputs[x].";

// A view into `request`, which must outlive it and stay as it is: raw contents or typed ones.
// Everything is checked but the values, in constant time, and nothing is allocated for a request
// that is refused but its error. INVALID_ARGUMENT names the input, and the expected and actual
// number of inputs, datatype, shape, contents or bytes. The parameters of the input mean nothing
// here and are passed over: standard clients always send some.
absl::StatusOr<RowsView> RowsFromInput(const inference::ModelInferRequest& request);

// INVALID_ARGUMENT (reason COLUMNS_MISMATCH, both shapes) unless the rows have as many columns as
// the version maps.
absl::Status CheckInputShape(const VersionHandle& version, const RowsView& rows);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_INPUT_H_
