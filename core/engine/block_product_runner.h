// Computes products with fixed rows, and turns each block of products into features while the block
// is in the first-level cache.
#ifndef PHIMAP_CORE_ENGINE_BLOCK_PRODUCT_RUNNER_H_
#define PHIMAP_CORE_ENGINE_BLOCK_PRODUCT_RUNNER_H_

#include "core/engine/product_runner.h"

namespace phimap {

// Gives the same bits as ProductRunner, faster. Passes sparse rows on to ProductRunner.
template <typename T>
class BlockProductRunner final : public ProductRunner<T> {
 public:
  // Whether the program is the products themselves, or a common function of products, norms and
  // offsets (EvaluatesBlocks).
  static bool Runs(const KernelProgram& program);

  // REQUIRES: Runs(landmarks.kernel.program()).
  explicit BlockProductRunner(PackedLandmarks<T> landmarks)
      : ProductRunner<T>(std::move(landmarks)) {}

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_BLOCK_PRODUCT_RUNNER_H_
