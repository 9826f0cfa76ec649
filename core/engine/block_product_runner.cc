#include "core/engine/block_product_runner.h"

#include "core/kernel/kernel_evaluator.h"

namespace phimap {

template <typename T>
bool BlockProductRunner<T>::Runs(const KernelProgram& program) {
  return program.is_plain() && program.uses_products() &&
         (program.is_identity() || EvaluatesBlocks(program));
}

template <typename T>
void BlockProductRunner<T>::Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
                                EngineScratch& scratch) const {
  if (x.is_sparse()) return ProductRunner<T>::Run(x, z, finite, check, scratch);
  const PanelMatrix<T>& rows = this->landmarks().rows;
  const KernelProgram& program = this->program();
  const LandmarkKernel<T>& kernel = this->landmarks().kernel;
  // Features are checked while they are computed, or not at all.
  bool* const finite_features = check == FiniteCheck::kFeatures ? finite : nullptr;
  if (program.is_identity()) {
    return rows.MultiplyAndCheck(x.x, x.stride, x.count, z, finite_features);
  }
  const KernelBlockOperands<T> operands{
      .x_norms = this->Norms(x, scratch), .row_norms = kernel.norms(), .offsets = kernel.offsets()};
  rows.MultiplyAndFinish(x.x, x.stride, x.count, z, [&](const ProductBlock<T>& block) {
    EvaluateKernelBlock(program, operands, block, kernel.landmarks(), z, finite_features);
  });
  this->CheckInputs(x, operands.x_norms, finite);
}

template class BlockProductRunner<float>;
template class BlockProductRunner<double>;

}  // namespace phimap
