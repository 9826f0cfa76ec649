// Features that are a kernel program of products with fixed rows, the landmarks, and of the other
// values that the program reads of each pair.
#ifndef PHIMAP_CORE_ENGINE_PRODUCT_RUNNER_H_
#define PHIMAP_CORE_ENGINE_PRODUCT_RUNNER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/engine/feature_runner.h"
#include "core/engine/landmark_kernel.h"
#include "core/engine/pair_values.h"
#include "core/kernel/value_remedy.h"
#include "core/linalg/panel_product.h"
#include "core/plan/plan.h"

namespace phimap {

// Landmarks, packed for products and programs.
template <typename T>
struct PackedLandmarks {
  // FAILED_PRECONDITION if the squared norm of a landmark overflows T. Throws std::bad_alloc.
  static absl::StatusOr<PackedLandmarks> Pack(const ProductFeatures<T>& features);

  PanelMatrix<T> rows;
  PairValueList<T> pair_values;
  LandmarkKernel<T> kernel;
};

// Computes all products of a tile first, then the other operands, then runs the program.
template <typename T>
class ProductRunner : public FeatureRunner<T> {
 public:
  explicit ProductRunner(PackedLandmarks<T> landmarks) : landmarks_(std::move(landmarks)) {}

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override;

  int64_t features() const override { return landmarks_.kernel.features(); }
  // L1 distances and pair values read every column.
  bool takes_sparse() const override {
    return !program().uses_l1_distances() && landmarks_.pair_values.empty();
  }
  int64_t memory_bytes() const override;
  int64_t multiplications() const override;
  int64_t multiplications_of_numbers() const override {
    return program().uses_products() ? landmarks_.rows.multiplications() : 0;
  }
  absl::string_view overflow_cause() const override { return landmarks_.kernel.overflow_cause(); }
  absl::string_view overflow_remedy() const override {
    return DividesByRow(program()) ? ValueRemedy(program()) : FeatureRunner<T>::overflow_remedy();
  }

 protected:
  const PackedLandmarks<T>& landmarks() const { return landmarks_; }
  const KernelProgram& program() const { return landmarks_.kernel.program(); }
  // Returns ‖x_i‖² of each row, in memory of `scratch`; null if the program reads no norms.
  const T* Norms(const TileRows<T>& x, EngineScratch& scratch) const;
  // Does the checks of FeatureRunner::Run for norms, and for numbers whose overflow L1 distances or
  // column sums hide.
  void CheckInputs(const TileRows<T>& x, const T* norms, bool* finite) const;

 private:
  struct Memory;

  void Multiply(const TileRows<T>& x, T* const* z) const;
  T* const* Distances(const TileRows<T>& x, T* const* z, Memory& memory) const;
  void ComputePairValues(const TileRows<T>& x, Memory& memory, EngineScratch& scratch) const;

  const PackedLandmarks<T> landmarks_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_PRODUCT_RUNNER_H_
