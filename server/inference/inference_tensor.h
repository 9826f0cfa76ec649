// How the Open Inference Protocol describes tensors: names, datatypes, shapes, parameters.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_TENSOR_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_TENSOR_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/rows.h"
#include "inference/inference_service.pb.h"

namespace phimap {

// Maximum size of a request's id, which the answer repeats: half of the space that CheckAnswerFits
// leaves besides the features.
inline constexpr size_t kMaxIdBytes = 512;
inline constexpr char kInputName[] = "x";
inline constexpr char kFeaturesName[] = "features";
inline constexpr char kResidualName[] = "residual";

// The kind of model, in the public protocol's field `platform`.
inline constexpr char kModelPlatform[] = "phimap_plan";

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;
using TensorShape = google::protobuf::RepeatedField<int64_t>;

// "FP32" or "FP64".
const char* DatatypeOf(FloatType type);

// Returns a text such as "[2, 64]". Shows only the first dimensions of a shape that has many.
std::string ShapeText(const TensorShape& shape);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_TENSOR_H_
