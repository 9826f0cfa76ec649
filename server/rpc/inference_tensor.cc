#include "server/rpc/inference_tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

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

absl::Status CheckKnown(const InferParameters& parameters, absl::string_view known,
                        absl::string_view field) {
  const std::string* unknown = nullptr;
  for (const auto& [name, value] : parameters) {
    if (!known.empty() && name == known) continue;
    if (unknown == nullptr || name < *unknown) unknown = &name;
  }
  if (unknown == nullptr) return absl::OkStatus();
  const std::string name = Quoted(*unknown);
  return MakeError(absl::StatusCode::kInvalidArgument, "UNKNOWN_PARAMETER", field,
                   known.empty()
                       ? absl::StrCat("there is no parameter ", name, "; a tensor has none here")
                       : absl::StrCat("there is no parameter ", name, "; there is ", Quoted(known)),
                   {{"parameter", Excerpt(*unknown)}});
}

}  // namespace phimap
