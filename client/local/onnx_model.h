// An artifact as an ONNX model, for runtimes that are not phimap's: opset 13, which every newer
// runtime reads. The model computes what the engine computes, in the serving type and in the
// runtime's own order of sums, so its numbers differ from the engine's in rounding.
#ifndef PHIMAP_CLIENT_LOCAL_ONNX_MODEL_H_
#define PHIMAP_CLIENT_LOCAL_ONNX_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/feature_map/feature_map.h"

namespace phimap {

// Which outputs a model has.
enum class OnnxOutputs {
  // `features`, rows × features in the serving type.
  kFeatures,
  // `label`, the name of each row's class, as int64 if all names are integers; `scores`, rows ×
  // scores in float64; and `probabilities`, rows × classes in float64, if the head has a link. For
  // numbers `value`, rows × 1 in float64.
  kAnswers,
};

// Returns a serialized onnx.ModelProto with one input, `rows`, n × columns in the serving type;
// standardisation and everything else is in the graph. The metadata have the digest, spec, kernel,
// names of columns and names of classes, the names one a line. A model has no errors: where a
// kernel takes numbers >= 0 and the engine refuses a row with others, the model's answer is NaN.
// Errors: UNIMPLEMENTED (OUTPUT_NOT_AVAILABLE), with the reason, for kernels of strings and remote
//         ones, which ONNX cannot say, and for models over the 2 GiB of its format;
//         FAILED_PRECONDITION (HEAD_MISSING) for answers without a head. Throws std::bad_alloc.
absl::StatusOr<std::string> OnnxModelOf(const FeatureMap& map, OnnxOutputs outputs);

}  // namespace phimap

#endif  // PHIMAP_CLIENT_LOCAL_ONNX_MODEL_H_
