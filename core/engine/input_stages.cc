// The input stage of an engine: numbers, projected numbers, and strings.
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "core/engine/stages.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Computes (x − c) ∘ s of a row of float64. Immutable, thread-safe.
class ShiftAndScale {
 public:
  explicit ShiftAndScale(const InputStage& stage)
      : columns_(stage.columns), shift_(stage.shift), scale_(stage.scale) {}

  bool empty() const { return shift_.empty() && scale_.empty(); }
  // s; empty if all scales are 1.
  const std::vector<double>& scale() const { return scale_; }
  void Apply(double* row) const {
    if (!shift_.empty()) {
      for (int64_t k = 0; k < columns_; ++k) row[k] -= shift_[k];
    }
    if (!scale_.empty()) {
      for (int64_t k = 0; k < columns_; ++k) row[k] *= scale_[k];
    }
  }
  int64_t memory_bytes() const {
    return static_cast<int64_t>((shift_.size() + scale_.size()) * sizeof(double));
  }

 private:
  int64_t columns_ = 0;
  std::vector<double> shift_;
  std::vector<double> scale_;
};

// Rounds each of `count` numbers to T.
template <typename T>
void RoundRow(const double* from, int64_t count, T* to) {
  for (int64_t k = 0; k < count; ++k) to[k] = static_cast<T>(from[k]);
}

// Sparse rows of a tile after an input stage without a shift. Grows as needed and keeps its memory.
template <typename T>
class SparseTile {
 public:
  // Takes the sparse rows of a tile, with each value scaled in float64 and rounded once. `scale`: a
  // number for each column, or empty. REQUIRES: at most kMaxSparseRows rows.
  void Fill(absl::Span<const RowPlace> tile, const std::vector<double>& scale) {
    PHIMAP_CHECK(static_cast<int64_t>(tile.size()) <= kMaxSparseRows);
    offsets_.assign(1, 0);
    columns_.clear();
    values_.clear();
    for (const RowPlace& place : tile) {
      const SparseRowsView& rows = *place.part->rows.sparse();
      for (int64_t entry = rows.offset(place.row); entry < rows.offset(place.row + 1); ++entry) {
        const int32_t column = rows.column(entry);
        double value = rows.value(entry);
        if (!scale.empty()) value *= scale[column];
        columns_.push_back(column);
        values_.push_back(static_cast<T>(value));
      }
      offsets_.push_back(static_cast<int64_t>(values_.size()));
    }
  }
  SparseRowsRef<T> ref() const {
    return {static_cast<int64_t>(offsets_.size()) - 1, offsets_.data(), columns_.data(),
            values_.data()};
  }

 private:
  std::vector<int64_t> offsets_;
  std::vector<int32_t> columns_;
  std::vector<T> values_;
};

// The input stage x' = (x − c) ∘ s of rows of numbers. Remote kernel values pass through it too,
// without c and s.
template <typename T>
class NumberInput final : public InputRunner<T> {
 public:
  // REQUIRES: `stage` has no projection. Its shift c and scale s, if given, have input.columns
  //           numbers. stays_sparse may be true only if there is no shift. A number that is missing
  //           from a sparse row is 0. It stays 0 under any scale, but not under a shift.
  NumberInput(const EngineInput& input, const InputStage& stage, bool stays_sparse)
      : InputRunner<T>(input, stays_sparse),
        scaling_(stage),
        stride_(SpreadStride<T>(input.columns)) {}

  TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const override {
    Memory& memory = scratch.Of<Memory>();
    const int64_t count = tile.size();
    if (this->StaysSparse(tile[0].part->rows)) {
      memory.sparse.Fill(tile, scaling_.scale());
      return {.count = count, .sparse = memory.sparse.ref()};
    }
    constexpr FloatType kType = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
    const int64_t columns = this->input().columns;
    Grow(memory.x, kDenseTileRows * stride_);
    memory.row.resize(columns + 1);  // remote kernel values may have one more
    T* x = memory.x.data();
    for (const RowPlace& place : tile) {
      const RowsView* const source = place.part->rows.dense();
      if (scaling_.empty() && source != nullptr && source->type == kType) {
        std::memcpy(x, source->Row(place.row), sizeof(T) * columns);
      } else {
        place.part->rows.CopyRow(place.row, memory.row.data());
        scaling_.Apply(memory.row.data());
        RoundRow(memory.row.data(), columns, x);
      }
      x += stride_;
    }
    return {.count = count, .x = memory.x.data(), .stride = stride_};
  }

  int64_t memory_bytes() const override { return scaling_.memory_bytes(); }

 private:
  struct Memory {
    AlignedArray<T> x;
    SparseTile<T> sparse;
    std::vector<double> row;
  };

  const ShiftAndScale scaling_;
  const int64_t stride_;
};

// The input stage x' = Pᵀ·((x − c) ∘ s). Holds P, packed in float64. The output is dense.
template <typename T>
class ProjectedInput final : public InputRunner<T> {
 public:
  // REQUIRES: `stage` has a projection.
  ProjectedInput(const EngineInput& input, const InputStage& stage)
      : InputRunner<T>(input, /*stays_sparse=*/stage.shift.empty()),
        scaling_(stage),
        projection_(PanelMatrix<double>::Pack(stage.projection.view())),
        stride_(SpreadStride<T>(stage.projection.cols())) {}

  TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const override {
    Memory& memory = scratch.Of<Memory>();
    const int64_t count = tile.size();
    const int64_t columns = projection_.columns();
    double* const* const projected = memory.projected.Allocate(count, columns);
    if (this->StaysSparse(tile[0].part->rows)) {
      memory.sparse.Fill(tile, scaling_.scale());
      projection_.MultiplySparse(memory.sparse.ref(), projected);
    } else {
      const int64_t input_columns = this->input().columns;
      Grow(memory.rows, kDenseTileRows * input_columns);
      double* row = memory.rows.data();
      for (const RowPlace& place : tile) {
        place.part->rows.CopyRow(place.row, row);
        scaling_.Apply(row);
        row += input_columns;
      }
      projection_.Multiply(memory.rows.data(), input_columns, count, projected);
    }
    Grow(memory.x, kMaxTileRows * stride_);
    for (int64_t i = 0; i < count; ++i) {
      RoundRow(projected[i], columns, memory.x.data() + i * stride_);
    }
    return {.count = count, .x = memory.x.data(), .stride = stride_};
  }

  int64_t memory_bytes() const override {
    return projection_.memory_bytes() + scaling_.memory_bytes();
  }
  int64_t multiplications() const override { return projection_.multiplications(); }

 private:
  struct Memory {
    AlignedArray<T> x;
    AlignedArray<double> rows;  // (x − c) ∘ s of dense rows
    SparseTile<double> sparse;  // (x − c) ∘ s of sparse rows
    NumberRows<double> projected;
  };

  const ShiftAndScale scaling_;
  const PanelMatrix<double> projection_;
  const int64_t stride_;
};

// The input stage of strings, which passes them on unchanged.
template <typename T>
class StringInput final : public InputRunner<T> {
 public:
  explicit StringInput(const EngineInput& input) : InputRunner<T>(input, /*stays_sparse=*/false) {}

  TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const override {
    std::vector<const std::string*>& strings = scratch.Of<Memory>().strings;
    strings.clear();
    for (const RowPlace& place : tile) {
      strings.push_back(&(*place.part->rows.strings())[place.row]);
    }
    return {.count = static_cast<int64_t>(tile.size()), .strings = strings.data()};
  }

  int64_t memory_bytes() const override { return 0; }

 private:
  struct Memory {
    std::vector<const std::string*> strings;
  };
};

// Whether a program takes bytes as well as texts.
bool TakesBytes(const KernelProgram& program) {
  return std::all_of(program.strings().begin(), program.strings().end(),
                     [](const StringKernel& kernel) { return kernel.unit == StringUnit::kByte; });
}

}  // namespace

template <typename T>
std::unique_ptr<const InputRunner<T>> LoadInput(const InputStage& stage,
                                                const ServingStages<T>& stages,
                                                const FeatureRunner<T>& features) {
  if (const auto* strings = std::get_if<StringFeatures>(&stages.features)) {
    return std::make_unique<const StringInput<T>>(
        EngineInput{.strings = true, .bytes = TakesBytes(strings->program)});
  }
  const bool remote = std::holds_alternative<RemoteFeatures>(stages.features);
  const EngineInput input{.columns = remote ? features.features() : stage.columns,
                          .remote = remote};
  if (!stage.projection.empty()) return std::make_unique<const ProjectedInput<T>>(input, stage);
  const bool stays_sparse = stage.shift.empty() && features.takes_sparse();
  return std::make_unique<const NumberInput<T>>(input, stage, stays_sparse);
}

template std::unique_ptr<const InputRunner<float>> LoadInput(const InputStage&,
                                                             const ServingStages<float>&,
                                                             const FeatureRunner<float>&);
template std::unique_ptr<const InputRunner<double>> LoadInput(const InputStage&,
                                                              const ServingStages<double>&,
                                                              const FeatureRunner<double>&);

}  // namespace phimap
