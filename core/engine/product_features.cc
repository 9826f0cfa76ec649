// Features that are a kernel program of products with fixed rows, the landmarks, and of the other
// values that the program reads of each pair.
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/landmark_kernel.h"
#include "core/engine/pair_values.h"
#include "core/engine/stages.h"
#include "core/kernel/kernel_evaluator.h"
#include "core/kernel/value_error.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

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
      MakeError(absl::StatusCode::kFailedPrecondition, reason::kValueNotRepresentable, "",
                absl::StrCat("the squared norm of a landmark overflows ", FloatTypeName(kType))),
      "standardize the inputs or serve in float64");
}

// Landmarks, packed for products and programs.
template <typename T>
struct PackedLandmarks {
  // FAILED_PRECONDITION if the squared norm of a landmark overflows T. Throws std::bad_alloc.
  static absl::StatusOr<PackedLandmarks> Pack(const ProductFeatures<T>& features) {
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
      packed.pair_values.ComputeSelf(
          {.count = rows.rows(), .x = rows.data(), .stride = rows.cols()}, self.pair_values());
      packed.kernel.TakeSelfValues(std::move(self));
    }
    return packed;
  }

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
           EngineScratch& scratch) const override {
    Memory& memory = scratch.Of<Memory>();
    if (program().uses_products()) {
      if (x.is_sparse()) {
        landmarks_.rows.MultiplySparse(x.sparse, z);
      } else {
        landmarks_.rows.Multiply(x.x, x.stride, x.count, z);
      }
    }
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

  int64_t features() const override { return landmarks_.kernel.features(); }
  // L1 distances and pair values read every column.
  bool takes_sparse() const override {
    return !program().uses_l1_distances() && landmarks_.pair_values.empty();
  }
  int64_t memory_bytes() const override {
    return landmarks_.rows.memory_bytes() + landmarks_.pair_values.memory_bytes() +
           landmarks_.kernel.memory_bytes();
  }
  // A step of an L1 distance takes three operations, where a step of a product takes one.
  int64_t multiplications() const override {
    const int64_t passes =
        (program().uses_products() ? 1 : 0) + (program().uses_l1_distances() ? 3 : 0);
    return passes * landmarks_.rows.multiplications() + landmarks_.pair_values.multiplications();
  }
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
  const T* Norms(const TileRows<T>& x, EngineScratch& scratch) const {
    if (!program().uses_norms()) return nullptr;
    T* const norms = scratch.Of<NormMemory>().norms.data();
    if (x.is_sparse()) {
      ChainSquaredNorms(x.sparse, norms);
    } else {
      ChainSquaredNorms(x.x, x.stride, x.count, landmarks_.rows.depth(), norms);
    }
    return norms;
  }

  // Does the checks of FeatureRunner::Run for norms, and for numbers whose overflow L1 distances or
  // column sums hide.
  void CheckInputs(const TileRows<T>& x, const T* norms, bool* finite) const {
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

 private:
  struct NormMemory {
    std::array<T, kMaxTileRows> norms;
  };
  struct Memory {
    NumberRows<T> distances;
    NumberRows<T> pair_values;
    SelfValues<T> self;
    typename LandmarkKernel<T>::Memory row;
  };

  // Returns L1 distances, in `z` if there are no products; null if the program reads no distances.
  T* const* Distances(const TileRows<T>& x, T* const* z, Memory& memory) const {
    if (!program().uses_l1_distances()) return nullptr;
    T* const* const distances =
        program().uses_products()
            ? memory.distances.Allocate(x.count, landmarks_.kernel.landmarks())
            : z;
    landmarks_.rows.L1Distances(x.x, x.stride, x.count, distances);
    return distances;
  }

  void ComputePairValues(const TileRows<T>& x, Memory& memory, EngineScratch& scratch) const {
    const PairValueList<T>& pair_values = landmarks_.pair_values;
    const int64_t count = pair_values.count();
    const int64_t factors = static_cast<int64_t>(program().factors().size());
    if (factors > 0) memory.self.Reserve(count, factors, x.count);
    if (count == 0) return;
    pair_values.Compute(x,
                        memory.pair_values.Allocate(count * x.count, landmarks_.kernel.landmarks()),
                        factors > 0 ? memory.self.pair_values() : nullptr, scratch);
  }

  const PackedLandmarks<T> landmarks_;
};

// Turns each block of products into features while the block is in the first-level cache. Gives the
// same bits as ProductRunner, faster. Passes sparse rows on to ProductRunner.
template <typename T>
class BlockProductRunner final : public ProductRunner<T> {
 public:
  // Whether the program is the products themselves, or a common function of products, norms and
  // offsets (EvaluatesBlocks).
  static bool Runs(const KernelProgram& program) {
    return program.is_plain() && program.uses_products() &&
           (program.is_identity() || EvaluatesBlocks(program));
  }

  // REQUIRES: Runs(landmarks.kernel.program()).
  explicit BlockProductRunner(PackedLandmarks<T> landmarks)
      : ProductRunner<T>(std::move(landmarks)) {}

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override {
    if (x.is_sparse()) return ProductRunner<T>::Run(x, z, finite, check, scratch);
    const PanelMatrix<T>& rows = this->landmarks().rows;
    const KernelProgram& program = this->program();
    const LandmarkKernel<T>& kernel = this->landmarks().kernel;
    // Features are checked while they are computed, or not at all.
    bool* const finite_features = check == FiniteCheck::kFeatures ? finite : nullptr;
    if (program.is_identity()) {
      return rows.MultiplyAndCheck(x.x, x.stride, x.count, z, finite_features);
    }
    const KernelBlockOperands<T> operands{.x_norms = this->Norms(x, scratch),
                                          .row_norms = kernel.norms(),
                                          .offsets = kernel.offsets()};
    rows.MultiplyAndFinish(x.x, x.stride, x.count, z, [&](const ProductBlock<T>& block) {
      EvaluateKernelBlock(program, operands, block, kernel.landmarks(), z, finite_features);
    });
    this->CheckInputs(x, operands.x_norms, finite);
  }
};

// Features that are a kernel program of L1 distances to fixed rows. Old plans have this form: their
// programs receive L1 distances in place of products.
template <typename T>
class L1Runner final : public FeatureRunner<T> {
 public:
  explicit L1Runner(const L1Features<T>& features)
      : rows_(PanelMatrix<T>::PackTransposed(features.rows.view())),
        kernel_(features.program, features.rows.rows()) {}

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override {
    rows_.L1Distances(x.x, x.stride, x.count, z);
    if (!kernel_.program().is_identity()) {
      kernel_.Evaluate({.rows = x.count, .products = z, .l1_distances = z}, z,
                       scratch.Of<typename LandmarkKernel<T>::Memory>());
    }
    for (int64_t i = 0; i < x.count; ++i) {
      if (!AllFinite(x.row(i), rows_.depth())) finite[i] = false;
    }
    if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features(), finite);
  }

  int64_t features() const override { return kernel_.features(); }
  int64_t memory_bytes() const override { return rows_.memory_bytes(); }
  // A step of a distance takes three operations, where a step of a product takes one.
  int64_t multiplications() const override { return 3 * rows_.multiplications(); }

 private:
  const PanelMatrix<T> rows_;
  LandmarkKernel<T> kernel_;
};

}  // namespace

template <typename T>
LoadedFeatures<T> LoadFeatures(const ProductFeatures<T>& features) {
  PHIMAP_ASSIGN_OR_RETURN(PackedLandmarks<T> landmarks, PackedLandmarks<T>::Pack(features));
  if (BlockProductRunner<T>::Runs(features.program)) {
    return std::make_unique<const BlockProductRunner<T>>(std::move(landmarks));
  }
  return std::make_unique<const ProductRunner<T>>(std::move(landmarks));
}

template <typename T>
LoadedFeatures<T> LoadFeatures(const L1Features<T>& features) {
  return std::make_unique<const L1Runner<T>>(features);
}

template LoadedFeatures<float> LoadFeatures(const ProductFeatures<float>&);
template LoadedFeatures<double> LoadFeatures(const ProductFeatures<double>&);
template LoadedFeatures<float> LoadFeatures(const L1Features<float>&);
template LoadedFeatures<double> LoadFeatures(const L1Features<double>&);

}  // namespace phimap
