// The parameter gamma, which several kernels share. Its value is a number, or is computed from the
// data.
#ifndef PHIMAP_CORE_KERNEL_LEAF_GAMMA_PARAMETER_H_
#define PHIMAP_CORE_KERNEL_LEAF_GAMMA_PARAMETER_H_

#include "core/kernel/parameter.h"

namespace phimap {

inline constexpr absl::string_view kScaleWord = "scale";
inline constexpr absl::string_view kMedianWord = "median";
inline constexpr absl::string_view kGammaWords[] = {kScaleWord, kMedianWord};

// Gamma of kernels of inner products: any number.
constexpr Parameter GammaOfProducts(absl::string_view default_text) {
  return {.name = "gamma",
          .type = ParameterType::kNumber,
          .default_text = default_text,
          .words = kGammaWords,
          .unit = "1/(unit of the inputs)²",
          .line =
              "factor of the inner product; gamma=scale takes 1/(p·Var) of the stream's numbers, "
              "gamma=median takes 1/median ‖x−y‖² of its rows"};
}

// Gamma of kernels of distances: a positive number.
constexpr Parameter GammaOfDistances(absl::string_view unit) {
  return {.name = "gamma",
          .type = ParameterType::kNumber,
          .default_text = kScaleWord,
          .least = 0,
          .above_least = true,
          .words = kGammaWords,
          .unit = unit,
          .line =
              "factor of the distance; gamma=scale takes 1/(p·Var) of the stream's numbers, "
              "gamma=median takes 1/median ‖x−y‖² of its rows"};
}

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_LEAF_GAMMA_PARAMETER_H_
