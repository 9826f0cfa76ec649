#include "core/engine/product_runner.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/number_rows.h"
#include "core/status/error.h"

namespace phimap {
namespace {

// Returns the squared norms of the landmarks, padded with zeros to whole panels.
template <typename T>
absl::StatusOr<std::vector<T>> LandmarkNorms(const Matrix<T>& rows, int64_t padded_columns) {
  std::vector<T> norms(padded_columns);
  ChainSquaredNorms(rows.data(), rows.cols(), rows.rows(), rows.cols(), norms.data());
  if (AllFinite(norms.data(), rows.rows())) return norms;
  constexpr FloatType kType = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  return WithRemedy(
      MakeError(absl::StatusCode::kFailedPrecondition, "VALUE_NOT_REPRESENTABLE", "",
                absl::StrCat("the squared norm of a landmark overflows ", FloatTypeName(kType))),
      "standardize the inputs or serve in float64");
}

template <typename T>
struct NormMemory {
  std::array<T, kMaxTileRows> norms;
};

}  // namespace

template <typename T>
absl::StatusOr<PackedLandmarks<T>> PackedLandmarks<T>::Pack(const ProductFeatures<T>& features) {
  const Matrix<T>& rows = features.rows;
  PackedLandmarks packed{.rows = PanelMatrix<T>::PackTransposed(rows.view()),
                         .pair_values = PairValueList<T>::Of(features.program, rows),
                         .kernel = LandmarkKernel<T>(features.program, rows.rows())};
  if (!features.offsets.empty()) {
    std::vector<T> offsets = features.offsets;
    offsets.resize(packed.rows.padded_columns());
    packed.kernel.TakeOffsets(std::move(offsets));
  }
  if (features.program.uses_norms()) {
    absl::StatusOr<std::vector<T>> norms = LandmarkNorms(rows, packed.rows.padded_columns());
    if (!norms.ok()) return norms.status();
    packed.kernel.TakeNorms(*std::move(norms));
  }
  const int64_t factors = static_cast<int64_t>(features.program.factors().size());
  if (factors > 0) {
    SelfValues<T> self;
    self.Reserve(packed.pair_values.count(), factors, rows.rows());
    packed.pair_values.ComputeSelf({.count = rows.rows(), .x = rows.data(), .stride = rows.cols()},
                                   self.pair_values());
    packed.kernel.TakeSelfValues(std::move(self));
  }
  return packed;
}

template <typename T>
struct ProductRunner<T>::Memory {
  NumberRows<T> distances;
  NumberRows<T> pair_values;
  SelfValues<T> self;
  typename LandmarkKernel<T>::Memory row;
};

template <typename T>
void ProductRunner<T>::Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
                           EngineScratch& scratch) const {
  Memory& memory = scratch.Of<Memory>();
  if (program().uses_products()) Multiply(x, z);
  T* const* const distances = Distances(x, z, memory);
  const T* const norms = Norms(x, scratch);
  if (!program().is_identity()) {  // else features are the products
    ComputePairValues(x, memory, scratch);
    landmarks_.kernel.Evaluate({.rows = x.count,
                                .products = program().uses_products() ? z : nullptr,
                                .l1_distances = distances,
                                .norms = norms,
                                .pair_values = memory.pair_values.rows(),
                                .self = &memory.self},
                               z, memory.row);
  }
  CheckInputs(x, norms, finite);
  if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features(), finite);
}

template <typename T>
void ProductRunner<T>::Multiply(const TileRows<T>& x, T* const* z) const {
  if (x.is_sparse()) {
    landmarks_.rows.MultiplySparse(x.sparse, z);
  } else {
    landmarks_.rows.Multiply(x.x, x.stride, x.count, z);
  }
}

// Returns L1 distances, in `z` if there are no products; null if the program reads no distances.
template <typename T>
T* const* ProductRunner<T>::Distances(const TileRows<T>& x, T* const* z, Memory& memory) const {
  if (!program().uses_l1_distances()) return nullptr;
  T* const* const distances =
      program().uses_products() ? memory.distances.Allocate(x.count, landmarks_.kernel.landmarks())
                                : z;
  landmarks_.rows.L1Distances(x.x, x.stride, x.count, distances);
  return distances;
}

template <typename T>
const T* ProductRunner<T>::Norms(const TileRows<T>& x, EngineScratch& scratch) const {
  if (!program().uses_norms()) return nullptr;
  T* const norms = scratch.Of<NormMemory<T>>().norms.data();
  if (x.is_sparse()) {
    ChainSquaredNorms(x.sparse, norms);
  } else {
    ChainSquaredNorms(x.x, x.stride, x.count, landmarks_.rows.depth(), norms);
  }
  return norms;
}

template <typename T>
void ProductRunner<T>::ComputePairValues(const TileRows<T>& x, Memory& memory,
                                         EngineScratch& scratch) const {
  const PairValueList<T>& pair_values = landmarks_.pair_values;
  const int64_t count = pair_values.count();
  const int64_t factors = static_cast<int64_t>(program().factors().size());
  if (factors > 0) memory.self.Reserve(count, factors, x.count);
  if (count == 0) return;
  pair_values.Compute(x,
                      memory.pair_values.Allocate(count * x.count, landmarks_.kernel.landmarks()),
                      factors > 0 ? memory.self.pair_values() : nullptr, scratch);
}

template <typename T>
void ProductRunner<T>::CheckInputs(const TileRows<T>& x, const T* norms, bool* finite) const {
  for (int64_t i = 0; norms != nullptr && i < x.count; ++i) {
    if (!std::isfinite(norms[i])) finite[i] = false;
  }
  // L1 distances and column sums can hide a number that is not finite: a minimum may drop it, or
  // its column may be one that no sum reads.
  if (!program().uses_l1_distances() && program().sums().empty()) return;
  for (int64_t i = 0; i < x.count; ++i) {
    if (!AllFinite(x.row(i), landmarks_.rows.depth())) finite[i] = false;
  }
}

template <typename T>
int64_t ProductRunner<T>::memory_bytes() const {
  return landmarks_.rows.memory_bytes() + landmarks_.pair_values.memory_bytes() +
         landmarks_.kernel.memory_bytes();
}

// A step of an L1 distance takes three operations, where a step of a product takes one.
template <typename T>
int64_t ProductRunner<T>::multiplications() const {
  const int64_t passes =
      (program().uses_products() ? 1 : 0) + (program().uses_l1_distances() ? 3 : 0);
  return passes * landmarks_.rows.multiplications() + landmarks_.pair_values.multiplications();
}

template struct PackedLandmarks<float>;
template struct PackedLandmarks<double>;
template class ProductRunner<float>;
template class ProductRunner<double>;

}  // namespace phimap
