// The input stage of an engine: examples of any kind become rows of the serving type.
#ifndef PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_
#define PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/engine/engine_scratch.h"
#include "core/engine/tile.h"

namespace phimap {

// How much more a multiplication costs for a sparse row that stays sparse than for a dense row. A
// dense row is cheaper because twelve rows share what is loaded into registers. The ratio was
// measured with 10,000 columns: 4 at 1 % nonzeros, and 3 at 25 % (bench/sparse_bench). A row with
// entries for more than one number in four is therefore made dense.
inline constexpr double kSparseCost = 4;

// Immutable, thread-safe.
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

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_
