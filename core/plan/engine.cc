#include "core/plan/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_evaluator.h"
#include "core/linalg/panel_product.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

namespace {

// Rows that go through the stages together: a multiple of the row blocks of every target, and small
// enough that a tile's features stay in the second-level cache.
constexpr int64_t kTileRows = 48;

// Most bytes that a sparse W may take once it is dense: its shape costs an artifact next to
// nothing.
constexpr int64_t kMaxUnfoldedBytes = int64_t{1} << 30;

template <typename T>
struct TypedBuffers {
  AlignedArray<T> x;      // tile rows × input-stage columns
  AlignedArray<T> norms;  // tile rows
  AlignedArray<T> z;      // tile rows × features, or outputs if there is no projection
  AlignedArray<T> block;  // features: block sums of an L1 distance
  std::vector<T*> z_rows;
  std::vector<T*> y_rows;
};

// Where a row of a tile comes from and goes to.
struct RowPlace {
  TransformPart* part;
  int64_t row;
};

template <typename T>
void Grow(AlignedArray<T>& array, int64_t count) {
  if (array.size() < count) array = AlignedArray<T>(count);
}

}  // namespace

struct EngineScratch::Buffers {
  TypedBuffers<float> f32;
  TypedBuffers<double> f64;
  std::vector<double> row;
  AlignedArray<double> projected;
  std::vector<double*> projected_rows;
  std::vector<RowPlace> tile;

  template <typename T>
  TypedBuffers<T>& Typed() {
    if constexpr (sizeof(T) == 4) {
      return f32;
    } else {
      return f64;
    }
  }
};

EngineScratch::EngineScratch() : buffers_(std::make_unique<Buffers>()) {}
EngineScratch::~EngineScratch() = default;

// One plan, packed for serving type T.
template <typename T>
class TypedEngine final : public Engine {
 public:
  static absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan,
                                                            const ServingStages<T>& stages) {
    auto engine = std::unique_ptr<TypedEngine>(new TypedEngine(plan));
    engine->centre_ = stages.centre;
    PHIMAP_RETURN_IF_ERROR(engine->LoadFeatures(stages));
    PHIMAP_RETURN_IF_ERROR(engine->LoadProjection(stages));
    return std::unique_ptr<const Engine>(std::move(engine));
  }

  int64_t input_columns() const override { return input_.columns; }
  int64_t output_columns() const override { return output_columns_; }
  FloatType serving_type() const override {
    return sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  }
  int64_t memory_bytes() const override {
    return input_projection_.memory_bytes() + rows_.memory_bytes() + projection_.memory_bytes() +
           static_cast<int64_t>((row_norms_.size() + centre_.size()) * sizeof(T)) +
           l1_rows_.size() * static_cast<int64_t>(sizeof(T)) +
           static_cast<int64_t>((input_.shift.size() + input_.scale.size()) * sizeof(double));
  }
  int64_t multiplications_per_row() const override {
    return input_projection_.multiplications() + rows_.multiplications() + l1_rows_.size() +
           projection_.multiplications();
  }

  void Transform(absl::Span<TransformPart> parts, EngineScratch& scratch) const override {
    std::vector<RowPlace>& tile = scratch.buffers_->tile;
    tile.clear();
    tile.reserve(kTileRows);
    for (TransformPart& part : parts) {
      PHIMAP_CHECK(part.rows.columns == input_.columns);
      part.status = absl::OkStatus();
      for (int64_t i = 0; i < part.rows.rows; ++i) {
        tile.push_back({&part, i});
        if (tile.size() == kTileRows) {
          TransformTile(tile, *scratch.buffers_);
          tile.clear();
        }
      }
    }
    if (!tile.empty()) TransformTile(tile, *scratch.buffers_);
  }

 private:
  explicit TypedEngine(const Plan& plan) {
    input_.columns = plan.input.columns;
    input_.shift = plan.input.shift;
    input_.scale = plan.input.scale;
    stage_columns_ = plan.input.output_columns();
    x_stride_ = SpreadStride<T>(stage_columns_);
    plain_input_ = input_.shift.empty() && input_.scale.empty() && plan.input.projection.empty();
    output_columns_ = plan.output_columns();
    if (!plan.input.projection.empty()) {
      input_projection_ = PanelMatrix<double>::Pack(plan.input.projection.view());
    }
  }

  absl::Status LoadFeatures(const ServingStages<T>& stages) {
    feature_count_ = stages.feature_count();
    if (const auto* product = std::get_if<ProductFeatures<T>>(&stages.features)) {
      rows_ = PanelMatrix<T>::PackTransposed(product->rows.view());
      program_ = product->program;
      if (program_.uses_norms()) {
        row_norms_.resize(feature_count_);
        ChainSquaredNorms(product->rows.data(), product->rows.cols(), feature_count_,
                          product->rows.cols(), row_norms_.data());
        if (!AllFinite(row_norms_.data(), feature_count_)) {
          return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_REPRESENTABLE", "",
                           absl::StrCat("the squared norm of a landmark overflows ",
                                        FloatTypeName(serving_type()),
                                        "; standardize the inputs or serve in float64"));
        }
      }
      return absl::OkStatus();
    }
    if (const auto* l1 = std::get_if<L1Features<T>>(&stages.features)) {
      l1_rows_ = Matrix<T>::Uninit(l1->rows.cols(), l1->rows.rows());
      for (int64_t j = 0; j < l1->rows.rows(); ++j) {
        for (int64_t k = 0; k < l1->rows.cols(); ++k) l1_rows_(k, j) = l1->rows(j, k);
      }
      program_ = l1->program;
      return absl::OkStatus();
    }
    return MakeError(absl::StatusCode::kUnimplemented, "EXTERNAL_FEATURES", "",
                     "the version computes its features in an external kernel service, which this "
                     "build cannot call");
  }

  absl::Status LoadProjection(const ServingStages<T>& stages) {
    if (const auto* triangle = std::get_if<TriangularProjection<T>>(&stages.projection)) {
      projection_ = PanelMatrix<T>::PackUpperTriangle(triangle->elements.data(), triangle->order);
    } else if (const auto* dense = std::get_if<DenseProjection<T>>(&stages.projection)) {
      projection_ = PanelMatrix<T>::Pack(dense->matrix.view());
    } else if (const auto* sparse = std::get_if<SparseProjection<T>>(&stages.projection)) {
      // A zero does not change a chain, so the dense form has the same bits.
      const int64_t unfolded = sparse->rows * sparse->columns * static_cast<int64_t>(sizeof(T));
      if (unfolded > kMaxUnfoldedBytes) {
        return MakeError(
            absl::StatusCode::kResourceExhausted, "PROJECTION_TOO_LARGE", "",
            absl::StrCat("the version's sparse projection of ", sparse->rows, " by ",
                         sparse->columns, " takes ", unfolded, " bytes in memory; at most ",
                         kMaxUnfoldedBytes, " are allowed"),
            {{"limit", absl::StrCat(kMaxUnfoldedBytes)}, {"actual", absl::StrCat(unfolded)}});
      }
      Matrix<T> matrix(sparse->rows, sparse->columns);
      for (int64_t k = 0; k < sparse->rows; ++k) {
        for (int64_t i = sparse->row_offsets[k]; i < sparse->row_offsets[k + 1]; ++i) {
          matrix(k, sparse->column_indices[i]) = sparse->values[i];
        }
      }
      projection_ = PanelMatrix<T>::Pack(matrix.view());
    }
    has_projection_ = !std::holds_alternative<NoProjection>(stages.projection);
    return absl::OkStatus();
  }

  void TransformTile(absl::Span<const RowPlace> tile, EngineScratch::Buffers& buffers) const {
    TypedBuffers<T>& typed = buffers.Typed<T>();
    const int64_t rows = tile.size();
    RunInputStage(tile, buffers);
    Grow(typed.norms, kTileRows);
    const int64_t z_stride = SpreadStride<T>(feature_count_);
    Grow(typed.z, kTileRows * z_stride);
    typed.z_rows.resize(kTileRows);
    typed.y_rows.resize(kTileRows);
    for (int64_t i = 0; i < rows; ++i) {
      typed.z_rows[i] = typed.z.data() + i * z_stride;
      typed.y_rows[i] = static_cast<T*>(tile[i].part->features) + tile[i].row * output_columns_;
    }
    T* const* z = has_projection_ ? typed.z_rows.data() : typed.y_rows.data();
    RunFeatureStage(typed, rows, z);
    if (has_projection_) {
      projection_.Multiply(typed.z.data(), z_stride, rows, typed.y_rows.data());
    }
    for (int64_t i = 0; i < rows; ++i) CheckRow(typed, i, tile[i]);
  }

  // float64 whatever the input type, rounded once.
  void RunInputStage(absl::Span<const RowPlace> tile, EngineScratch::Buffers& buffers) const {
    TypedBuffers<T>& typed = buffers.Typed<T>();
    const int64_t rows = tile.size();
    Grow(typed.x, kTileRows * x_stride_);
    const bool projected = !(input_projection_.columns() == 0);
    if (projected) Grow(buffers.projected, kTileRows * (input_.columns + stage_columns_));
    buffers.row.resize(input_.columns);
    for (int64_t i = 0; i < rows; ++i) {
      const RowsView& source = tile[i].part->rows;
      if (plain_input_ && source.type == serving_type()) {
        std::memcpy(typed.x.data() + i * x_stride_, source.Row(tile[i].row),
                    sizeof(T) * stage_columns_);
        continue;
      }
      double* row = projected ? buffers.projected.data() + i * input_.columns : buffers.row.data();
      tile[i].part->rows.CopyRow(tile[i].row, row);
      ShiftAndScale(row);
      if (!projected) RoundRow(row, typed.x.data() + i * x_stride_);
    }
    if (!projected) return;
    double* out = buffers.projected.data() + kTileRows * input_.columns;
    buffers.projected_rows.resize(kTileRows);
    for (int64_t i = 0; i < rows; ++i) buffers.projected_rows[i] = out + i * stage_columns_;
    input_projection_.Multiply(buffers.projected.data(), input_.columns, rows,
                               buffers.projected_rows.data());
    for (int64_t i = 0; i < rows; ++i) {
      RoundRow(out + i * stage_columns_, typed.x.data() + i * x_stride_);
    }
  }

  void ShiftAndScale(double* row) const {
    if (!input_.shift.empty()) {
      for (int64_t k = 0; k < input_.columns; ++k) row[k] -= input_.shift[k];
    }
    if (!input_.scale.empty()) {
      for (int64_t k = 0; k < input_.columns; ++k) row[k] *= input_.scale[k];
    }
  }

  void RoundRow(const double* from, T* to) const {
    for (int64_t k = 0; k < stage_columns_; ++k) to[k] = static_cast<T>(from[k]);
  }

  void RunFeatureStage(TypedBuffers<T>& typed, int64_t rows, T* const* z) const {
    if (l1_rows_.empty()) {
      rows_.Multiply(typed.x.data(), x_stride_, rows, z);
    } else {
      Grow(typed.block, feature_count_);
      for (int64_t i = 0; i < rows; ++i) {
        L1Distances(typed.x.data() + i * x_stride_, typed.block.data(), z[i]);
      }
    }
    if (program_.uses_norms()) {
      ChainSquaredNorms(typed.x.data(), x_stride_, rows, stage_columns_, typed.norms.data());
    }
    for (int64_t i = 0; i < rows; ++i) {
      if (!program_.is_identity()) {
        EvaluateKernel(program_, z[i], program_.uses_norms() ? typed.norms.data()[i] : T{0},
                       row_norms_.data(), feature_count_, z[i]);
      }
      if (!centre_.empty()) {
        for (int64_t j = 0; j < feature_count_; ++j) z[i][j] -= centre_[j];
      }
    }
  }

  // Σ_k |x_k − a_jk| for all j: for blocks of kChainBlock in k, sums in the order of k; block sums
  // added in order.
  void L1Distances(const T* x, T* block, T* out) const {
    std::fill_n(out, feature_count_, T{0});
    for (int64_t begin = 0; begin < stage_columns_; begin += kChainBlock) {
      const int64_t end = std::min(stage_columns_, begin + kChainBlock);
      std::fill_n(block, feature_count_, T{0});
      for (int64_t k = begin; k < end; ++k) {
        const T* a = l1_rows_.row(k);
        for (int64_t j = 0; j < feature_count_; ++j) block[j] += std::abs(x[k] - a[j]);
      }
      for (int64_t j = 0; j < feature_count_; ++j) out[j] += block[j];
    }
  }

  // A kernel value that overflowed shows in the features, or, where exp(−inf) hides it, in the
  // norm; under L1, which has no norm, in the row itself.
  void CheckRow(const TypedBuffers<T>& typed, int64_t i, const RowPlace& place) const {
    const bool finite =
        (!program_.uses_norms() || std::isfinite(typed.norms.data()[i])) &&
        (l1_rows_.empty() || AllFinite(typed.x.data() + i * x_stride_, stage_columns_)) &&
        AllFinite(typed.y_rows[i], output_columns_);
    if (finite || !place.part->status.ok()) return;
    place.part->status = MakeError(
        absl::StatusCode::kOutOfRange, "NOT_REPRESENTABLE", absl::StrCat("rows[", place.row, "]"),
        absl::StrCat("kernel values or features of this row overflow ",
                     FloatTypeName(serving_type()),
                     "; scale the inputs, build with standardize, or serve in float64"),
        {{"row", absl::StrCat(place.row)}});
  }

  InputStage input_;  // without its projection, which is packed
  PanelMatrix<double> input_projection_;
  int64_t stage_columns_ = 0;
  int64_t x_stride_ = 0;
  bool plain_input_ = false;  // the stage changes nothing but the type
  int64_t feature_count_ = 0;
  int64_t output_columns_ = 0;
  PanelMatrix<T> rows_;
  std::vector<T> row_norms_;
  Matrix<T> l1_rows_;  // transposed: columns × features
  KernelProgram program_;
  std::vector<T> centre_;
  bool has_projection_ = false;
  PanelMatrix<T> projection_;
};

absl::StatusOr<std::unique_ptr<const Engine>> Engine::Load(const Plan& plan) {
  if (plan.arithmetic != kArithmetic) {
    return MakeError(absl::StatusCode::kUnimplemented, "UNKNOWN_ARITHMETIC", "",
                     absl::StrCat("the version wants arithmetic ", plan.arithmetic,
                                  "; this build knows ", kArithmetic));
  }
  PHIMAP_RETURN_IF_ERROR(plan.Validate());
  return std::visit(
      [&](const auto& stages) {
        using T = typename std::decay_t<decltype(stages)>::Element;
        return TypedEngine<T>::Load(plan, stages);
      },
      plan.stages);
}

const char* EngineTargetName() { return VectorTargetName(); }

}  // namespace phimap
