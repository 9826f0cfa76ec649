// The stages of an engine, and the tile of rows that goes through them.
//
// Tiles of examples pass an input stage (input_stages.cc) and then a feature stage, of which there
// are several kinds (*_features.cc). panel_engine.cc puts the stages together and adds the
// projection stage.
#ifndef PHIMAP_CORE_ENGINE_STAGES_H_
#define PHIMAP_CORE_ENGINE_STAGES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/linalg/panel_product.h"
#include "core/plan/plan.h"

namespace phimap {

// Maximum number of dense rows of a tile, so small that a tile's features stay in the second-level
// cache.
inline constexpr int64_t kDenseTileRows = 40;
// Maximum number of rows of a tile of sparse rows that stay sparse (InputRunner::StaysSparse). The
// rows of a tile share the matrix entries that they read, so more rows per tile read less memory.
inline constexpr int64_t kSparseTileRows = kMaxSparseRows;
inline constexpr int64_t kMaxTileRows = std::max(kDenseTileRows, kSparseTileRows);

// Source and destination of a row of a tile.
struct RowPlace {
  TransformPart* part;
  int64_t row;
};

// Rows of a tile after the input stage: dense, sparse or strings. Owns nothing.
template <typename T>
struct TileRows {
  int64_t count = 0;
  // Dense rows: row i begins at x + i * stride. Null for other rows.
  const T* x = nullptr;
  int64_t stride = 0;
  // Sparse rows. `offsets` is null for other rows.
  SparseRowsRef<T> sparse;
  // Strings. Null for other rows.
  const std::string* const* strings = nullptr;

  bool is_sparse() const { return sparse.offsets != nullptr; }
  const T* row(int64_t i) const { return x + i * stride; }
};

template <typename T>
void Grow(AlignedArray<T>& array, int64_t count) {
  if (array.size() < count) array = AlignedArray<T>(count);
}

// Rows of numbers side by side, in memory that grows as needed.
template <typename T>
class NumberRows {
 public:
  // Returns memory for `rows` rows of `columns` numbers, row i at [i]. Earlier contents are lost.
  T* const* Allocate(int64_t rows, int64_t columns) {
    Grow(numbers_, rows * columns);
    rows_.resize(rows);
    for (int64_t i = 0; i < rows; ++i) rows_[i] = numbers_.data() + i * columns;
    return rows_.data();
  }
  T* const* rows() const { return rows_.data(); }

 private:
  AlignedArray<T> numbers_;
  std::vector<T*> rows_;
};

// How much more a multiplication costs for a sparse row that stays sparse than for a dense row. A
// dense row is cheaper because twelve rows share what is loaded into registers. The ratio was
// measured with 10,000 columns: 4 at 1 % nonzeros, and 3 at 25 % (bench/sparse_bench). A row with
// entries for more than one number in four is therefore made dense.
inline constexpr double kSparseCost = 4;

// The input stage: examples of any kind become rows of the serving type. Immutable, thread-safe.
template <typename T>
class InputRunner {
 public:
  // `stays_sparse`: whether sparse rows may stay sparse, because the next stage reads only entries.
  InputRunner(const EngineInput& input, bool stays_sparse)
      : input_(input), stays_sparse_(stays_sparse) {}
  virtual ~InputRunner() = default;

  const EngineInput& input() const { return input_; }
  // Whether these rows stay sparse until the first product, which gives the same bits. Rows that
  // stay sparse share tiles only with rows that stay sparse.
  bool StaysSparse(const ExamplesView& rows) const {
    const SparseRowsView* const sparse = rows.sparse();
    return sparse != nullptr && stays_sparse_ &&
           static_cast<double>(sparse->entries()) * kSparseCost <=
               static_cast<double>(sparse->rows) * static_cast<double>(input_.columns);
  }

  // Computes the rows of a tile in float64, whatever their type, and rounds them once. The rows
  // live until `scratch` is used for the next tile. REQUIRES: all rows stay sparse (StaysSparse) or
  // none does; at most kMaxTileRows rows if they do, otherwise at most kDenseTileRows.
  virtual TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const = 0;

  virtual int64_t memory_bytes() const = 0;
  // Multiplications of a dense row.
  virtual int64_t multiplications() const { return 0; }

 private:
  const EngineInput input_;
  const bool stays_sparse_;
};

// Values of a feature stage that are checked for overflow.
enum class FiniteCheck {
  kInputs,    // values whose overflow the features hide, as exp(−∞) = 0 hides a norm of ∞
  kFeatures,  // those values, and each feature, for the last stage
};

// A feature stage: rows of a tile become features. Immutable, thread-safe.
template <typename T>
class FeatureRunner {
 public:
  virtual ~FeatureRunner() = default;

  // Computes z[i][j], which is feature j of row i. Each row has features() numbers. If a value of
  // row i that `check` covers is not finite, sets finite[i] to false. Otherwise leaves finite[i]
  // unchanged. The rows come from the plan's input stage. They are sparse only if takes_sparse().
  virtual void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
                   EngineScratch& scratch) const = 0;

  virtual int64_t features() const = 0;
  // Whether the stage reads only the entries of a sparse row, so that sparse rows need not become
  // dense.
  virtual bool takes_sparse() const { return false; }
  virtual int64_t memory_bytes() const = 0;
  // multiplications() is the number of multiplications for a dense row. Of these, a sparse row
  // needs multiplications_of_numbers() only for its entries. multiplications_per_byte() is the
  // number for each byte of a string.
  virtual int64_t multiplications() const = 0;
  virtual int64_t multiplications_of_numbers() const { return 0; }
  virtual double multiplications_per_byte() const { return 0; }

  // Return a cause of overflow other than the size of a row, and the remedy. The error that rejects
  // a row contains both.
  virtual absl::string_view overflow_cause() const { return ""; }
  virtual absl::string_view overflow_remedy() const {
    return "scale the inputs, build with standardize, or serve in float64";
  }
};

// Sets finite[i] to false for each of `count` rows of `columns` numbers that has a number which is
// not finite.
template <typename T>
void CheckFinite(const T* const* rows, int64_t count, int64_t columns, bool* finite) {
  for (int64_t i = 0; i < count; ++i) {
    if (!AllFinite(rows[i], columns)) finite[i] = false;
  }
}

// Makes the input stage of a plan for `features`, the feature stage that reads it.
template <typename T>
std::unique_ptr<const InputRunner<T>> LoadInput(const InputStage& stage,
                                                const ServingStages<T>& stages,
                                                const FeatureRunner<T>& features);

// Make the feature stage, with one function for each kind. The products return FAILED_PRECONDITION
// if the squared norm of a landmark overflows T. All throw std::bad_alloc.
template <typename T>
using LoadedFeatures = absl::StatusOr<std::unique_ptr<const FeatureRunner<T>>>;
template <typename T>
LoadedFeatures<T> LoadFeatures(const ProductFeatures<T>& features);
template <typename T>
LoadedFeatures<T> LoadFeatures(const L1Features<T>& features);
template <typename T>
LoadedFeatures<T> LoadFeatures(const ExpansionFeatures<T>& features);
template <typename T>
LoadedFeatures<T> LoadFeatures(const RemoteFeatures& features);
template <typename T>
LoadedFeatures<T> LoadFeatures(const StringFeatures& features);

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_STAGES_H_
