// Converts the input of a ModelInfer request to a checked RowsView, without copying.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_INPUT_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_INPUT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/rows.h"
#include "inference/inference_service.pb.h"
#include "server/registry/version_handle.h"

namespace phimap {

// Path of the rows in the request. Errors index the only input by its name.
inline constexpr char kInputField[] = "inputs[x].";

// Returns a view into `request`, into its raw or its typed contents. `request` must outlive the
// view unchanged. Checks everything but the values, in constant time. A rejected request allocates
// nothing but its error. INVALID_ARGUMENT names the input, and the expected and actual number of
// inputs, datatype, shape, contents or bytes. Ignores the input's parameters, because standard
// clients always send some that mean nothing here.
absl::StatusOr<RowsView> RowsFromInput(const inference::ModelInferRequest& request);

// Returns INVALID_ARGUMENT (reason COLUMNS_MISMATCH, with both shapes) unless the rows have the
// number of columns that the version maps.
absl::Status CheckInputShape(const VersionHandle& version, const RowsView& rows);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_INPUT_H_
