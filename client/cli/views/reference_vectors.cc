#include "client/cli/views/reference_vectors.h"

#include <algorithm>
#include <string>

namespace phimap::cli {

bool SelfCheckIsAllZero(const v1::SelfCheck& check) {
  const std::string& bytes = check.features().values_case() == v1::DenseRows::kFloat64Le
                                 ? check.features().float64_le()
                                 : check.features().float32_le();
  // The engine never returns -0, so a feature is 0 only if all its bytes are 0.
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

}  // namespace phimap::cli
