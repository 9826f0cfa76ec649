// Tensors as the Open Inference Protocol describes them: names, datatypes, shapes, parameters.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_TENSOR_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_TENSOR_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/rows.h"
#include "inference/inference_service.pb.h"

namespace phimap {

// Half of the space that CheckAnswerFits leaves beside the features, in which an id is sent back.
inline constexpr size_t kMaxIdBytes = 512;
inline constexpr char kInputName[] = "x";
inline constexpr char kFeaturesName[] = "features";
inline constexpr char kResidualName[] = "residual";

// Value of the public protocol's `platform`: the kind of model.
inline constexpr char kModelPlatform[] = "phimap_plan";

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;
using TensorShape = google::protobuf::RepeatedField<int64_t>;

// "FP32" or "FP64".
const char* DatatypeOf(FloatType type);

// "[2, 64]"; only the first dimensions of a shape with very many.
std::string ShapeText(const TensorShape& shape);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_TENSOR_H_
