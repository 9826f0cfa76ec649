// The input stage of an engine: examples of any kind become rows of the serving type.
#ifndef PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_
#define PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/engine/engine_scratch.h"
#include "core/engine/tile.h"

namespace phimap {

// Cost of a multiplication for a sparse row that stays sparse ("walks"), divided by that for a
// dense row, which shares its registers with eleven others. Measured with 10,000 columns: 4 at 1 %
// nonzeros, 3 at 25 % (bench/sparse_bench). So rows that name more than one number in four are made
// dense.
inline constexpr double kSparseCost = 4;

// Immutable, thread-safe.
template <typename T>
class InputRunner {
 public:
  // `walks_sparse`: whether sparse rows may stay sparse, because the next stage reads only entries.
  InputRunner(const EngineInput& input, bool walks_sparse)
      : input_(input), walks_sparse_(walks_sparse) {}
  virtual ~InputRunner() = default;

  const EngineInput& input() const { return input_; }
  // Whether these rows walk: they then stay sparse until the first product, which gives the same
  // bits. Rows that walk share tiles only with rows that walk.
  bool Walks(const ExamplesView& rows) const {
    const SparseRowsView* const sparse = rows.sparse();
    return sparse != nullptr && walks_sparse_ &&
           static_cast<double>(sparse->entries()) * kSparseCost <=
               static_cast<double>(sparse->rows) * static_cast<double>(input_.columns);
  }

  // Computes the rows of a tile in float64, whatever their type, and rounds them once. They live
  // until `scratch` is used for the next tile. REQUIRES: all rows walk or none does. At most
  // kMaxTileRows rows if they walk, otherwise kDenseTileRows.
  virtual TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const = 0;

  virtual int64_t memory_bytes() const = 0;
  // Multiplications of a dense row.
  virtual int64_t multiplications() const { return 0; }

 private:
  const EngineInput input_;
  const bool walks_sparse_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_
