// Reads requests of the Open Inference Protocol: the model that they name and, of a ModelInfer
// request, the parameters, the timeout, the rows of its input and the outputs that it asks for.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_REQUEST_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_REQUEST_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/plan/rows.h"
#include "inference/inference_service.pb.h"
#include "server/registry/version_handle.h"

namespace phimap {

// Maximum size of a request's id, which the answer repeats: half of the space that CheckAnswerFits
// leaves besides the features.
inline constexpr size_t kMaxIdBytes = 512;
inline constexpr char kInputName[] = "x";
inline constexpr char kFeaturesName[] = "features";
inline constexpr char kResidualName[] = "residual";
// Outputs of versions with a head.
inline constexpr char kLabelName[] = "label";
inline constexpr char kScoreName[] = "score";
inline constexpr char kProbabilityName[] = "probability";

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;

// "FP32" or "FP64".
const char* DatatypeOf(FloatType type);

// Names of the request's two fields, for errors.
struct ModelFields {
  absl::string_view name;
  absl::string_view version;
};
inline constexpr ModelFields kModelOfInfer{"model_name", "model_version"};
inline constexpr ModelFields kModelAskedFor{"name", "version"};

// Returns "name" or "name@version". Returns INVALID_ARGUMENT (reasons NAME_INVALID,
// VERSION_INVALID) unless `name` is a mapping's name and `version` is a version's number, an alias,
// "sha256:" and a digest, or empty for the newest version.
absl::StatusOr<std::string> ReferenceToModel(absl::string_view name, absl::string_view version,
                                             const ModelFields& fields);

// Changes the field of an error from "reference", which the request does not have, to the request's
// field for the version. `status` is an error about a reference that ReferenceToModel returned. The
// name in such a reference is well formed, so the part in error is the version.
absl::Status InModelFields(const absl::Status& status, const ModelFields& fields);

// Returns INVALID_ARGUMENT (reason PARAMETER_NOT_SUPPORTED, with the field and the remedy) if a
// parameter of the request, an input or an output requests a sequence, shared memory or classes. A
// parameter that is 0, empty or false requests nothing. Ignores all other parameters, known or not:
// standard clients always send some that mean nothing here (Triton's
// triton_enable_empty_final_response, KServe's binary_data_size, MLServer's content_type). Call
// this before reading the tensors, because an input in shared memory has no contents. Pure; linear
// in the number of tensors.
absl::Status CheckParameters(const inference::ModelInferRequest& request);

// Returns the parameter "timeout", an int64 or a uint64 in microseconds, as Triton defines it and
// its clients send it. Returns an infinite duration if it is 0 or absent. INVALID_ARGUMENT for
// another type (PARAMETER_TYPE_MISMATCH) or a negative number (FIELD_OUT_OF_RANGE). Ignores other
// parameters, because standard clients always send some that mean nothing here.
absl::StatusOr<absl::Duration> TimeoutOf(const InferParameters& parameters);

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

enum class InferenceOutput { kFeatures, kResidual, kLabel, kScore, kProbability };
// The name of an output in requests and answers.
const char* OutputName(InferenceOutput output);

// Returns the requested outputs in their order, or only the features if the request lists no
// outputs. INVALID_ARGUMENT names an output that does not exist (OUTPUT_UNKNOWN) or is requested
// twice (OUTPUT_DUPLICATED). Ignores the outputs' parameters, which mean nothing here.
absl::StatusOr<std::vector<InferenceOutput>> OutputsOf(const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_REQUEST_H_
