// The list of leaf kernels. To add one, add its file to core/kernel/leaf and a line here.
#include <algorithm>

#include "core/kernel/leaf_kernel.h"

namespace phimap {

// One line per kernel.
// clang-format off
#define PHIMAP_LEAF_KERNELS(X) \
  X(kLinearKernel) \
  X(kPolyKernel) \
  X(kSigmoidKernel) \
  X(kRbfKernel) \
  X(kLaplacianKernel) \
  X(kMaternKernel) \
  X(kRationalQuadraticKernel) \
  X(kAdditiveChi2Kernel) \
  X(kChi2Kernel) \
  X(kHistogramIntersectionKernel) \
  X(kDeltaKernel) \
  X(kCosineKernel) \
  X(kBilinearKernel) \
  X(kSpectrumKernel) \
  X(kJaccardKernel) \
  X(kWeightKernel)
// clang-format on

#define PHIMAP_DECLARE(NAME) extern const LeafKernel NAME;
PHIMAP_LEAF_KERNELS(PHIMAP_DECLARE)
#undef PHIMAP_DECLARE

namespace {

#define PHIMAP_ADDRESS(NAME) &NAME,
constexpr const LeafKernel* kLeafKernels[] = {PHIMAP_LEAF_KERNELS(PHIMAP_ADDRESS)};
#undef PHIMAP_ADDRESS

constexpr KernelCapability kCompositions[] = {
    {.name = "exp", .formula = "e^K", .line = "exp(K) of a kernel K", .parameters = {}},
    {.name = "normalize",
     .formula = "K(x,y)/√(K(x,x)·K(y,y))",
     .line = "normalize(K): each φ(x) scaled to length 1; rows need K(x,x) > 0, strings without "
             "n-grams have 0",
     .parameters = {}},
    {.name = "*",
     .formula = "c·K, K1·K2",
     .line = "c*K with a number c, K1*K2; binds tighter than +",
     .parameters = {}},
    {.name = "+", .formula = "K1 + K2", .line = "K1 + K2", .parameters = {}},
};

}  // namespace

absl::Span<const LeafKernel* const> LeafKernels() { return kLeafKernels; }

const LeafKernel* FindLeafKernel(absl::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kLeafKernels), std::end(kLeafKernels),
                   [&](const LeafKernel* leaf) { return leaf->name == name; });
  return found == std::end(kLeafKernels) ? nullptr : *found;
}

const LeafKernel& LinearKernel() { return kLinearKernel; }

std::vector<KernelCapability> KernelCapabilities() {
  std::vector<KernelCapability> all;
  for (const LeafKernel* leaf : kLeafKernels) {
    all.push_back({leaf->name, leaf->formula, leaf->line, leaf->parameters});
  }
  all.insert(all.end(), std::begin(kCompositions), std::end(kCompositions));
  return all;
}

}  // namespace phimap
