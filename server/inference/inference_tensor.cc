#include "server/inference/inference_tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace phimap {

const char* DatatypeOf(FloatType type) { return type == FloatType::kFloat32 ? "FP32" : "FP64"; }

std::string ShapeText(const TensorShape& shape) {
  constexpr int kShown = 8;
  std::string text = "[";
  for (int i = 0; i < std::min(shape.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", shape.Get(i));
  }
  return text + (shape.size() > kShown ? ", …]" : "]");
}

}  // namespace phimap
