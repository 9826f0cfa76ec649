// Computes the values x·A_m a_j of each bilinear form of a program.
#ifndef PHIMAP_CORE_ENGINE_BILINEAR_VALUES_H_
#define PHIMAP_CORE_ENGINE_BILINEAR_VALUES_H_

#include <memory>
#include <vector>

#include "core/engine/pair_values.h"
#include "core/kernel/bilinear_form.h"
#include "core/linalg/panel_product.h"

namespace phimap {

// Holds A_m a_j for each form and landmark, rounded once.
template <typename T>
class BilinearValues final : public PairValues<T> {
 public:
  // Returns null if the program has no forms.
  static std::unique_ptr<const PairValues<T>> Make(const KernelProgram& program,
                                                   const Matrix<T>& landmarks);

  int64_t count() const override { return static_cast<int64_t>(applied_.size()); }
  // REQUIRES: dense rows.
  void Compute(const TileRows<T>& x, T* const* values, T* const* self,
               EngineScratch& scratch) const override;
  void ComputeSelf(const TileRows<T>& x, T* const* self) const override;
  int64_t memory_bytes() const override;
  int64_t multiplications() const override;

 private:
  BilinearValues(const KernelProgram& program, const Matrix<T>& landmarks);

  const KernelProgram program_;  // owns the forms
  std::vector<PanelMatrix<T>> applied_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_BILINEAR_VALUES_H_
