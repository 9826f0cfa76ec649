// Tensors as the Open Inference Protocol describes them: names, datatypes, shapes, parameters.
#ifndef PHIMAP_SERVER_RPC_INFERENCE_TENSOR_H_
#define PHIMAP_SERVER_RPC_INFERENCE_TENSOR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/rows.h"
#include "inference/inference_service.pb.h"

namespace phimap {

inline constexpr char kInputName[] = "x";
inline constexpr char kFeaturesName[] = "features";
inline constexpr char kResidualName[] = "residual";

// Of the public protocol's `platform`: what a version is made of.
inline constexpr char kModelPlatform[] = "phimap_plan";

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;
using TensorShape = google::protobuf::RepeatedField<int64_t>;

// "FP32" or "FP64".
const char* DatatypeOf(FloatType type);

// "[2, 64]"; of a shape with very many dimensions the first.
std::string ShapeText(const TensorShape& shape);

// INVALID_ARGUMENT (reason UNKNOWN_PARAMETER) that names one of `parameters` and says which there
// are, `known`, unless all are `known`. The same one for the same request: a map has no order.
absl::Status CheckKnown(const InferParameters& parameters, absl::string_view known,
                        absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_INFERENCE_TENSOR_H_
