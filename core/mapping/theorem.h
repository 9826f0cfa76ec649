// The statement that a certificate names.
#ifndef PHIMAP_CORE_MAPPING_THEOREM_H_
#define PHIMAP_CORE_MAPPING_THEOREM_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/mapping/kernel_pca.h"
#include "core/mapping/landmark_factor.h"
#include "core/mapping/mapping_spec.h"

namespace phimap {

// What a theorem's numbers depend on beside the mapping's parameters.
struct TheoremFacts {
  // Of a row after the input stage.
  int64_t columns = 0;
  // Fourier features: of the kernel, and the largest ‖x'‖ of the held-out rows (0: none are there).
  double gamma = 0;
  double radius = 0;
  // Whether x' is 0 at the mean of the stream, else at the origin.
  bool is_centred = false;
  // Kernel PCA: components kept, their share of the trace, whether they were iterated, to what
  // residual.
  int64_t components = 0;
  double share = 0;
  bool iterated = false;
  double residual = 0;
  // Landmarks that any component has a weight of, and what randomizing lost.
  int64_t used_landmarks = 0;
  std::optional<GramLoss> gram;
  std::optional<RoundingLoss> rounding;
};

// What decides of which rows a theorem speaks.
struct ScopeFacts {
  // Whether gamma, or the scaling of columns, was taken from the stream.
  bool gamma_of_stream = false;
  bool scaling_of_stream = false;
  int64_t pool_rows = 0;
  // F2, F3: what was factored.
  const LandmarkFactor* landmarks = nullptr;
};

// Which rows the theorem that TheoremOf names speaks of, and at which rank tolerance; empty where
// none applies.
std::string TheoremScopeOf(const MappingSpec& mapping, const ScopeFacts& facts);

// The theorem that applies to the mapping: its source, what it promises, and, where the mapping's
// own numbers fix them, its numbers (docs/maths.md).
std::string TheoremOf(const MappingSpec& mapping, const TheoremFacts& facts);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_THEOREM_H_
