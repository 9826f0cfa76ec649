// The input stage of an engine: examples of any kind become rows of the serving type.
#ifndef PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_
#define PHIMAP_CORE_ENGINE_INPUT_RUNNER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/engine/engine_scratch.h"
#include "core/engine/tile.h"

namespace phimap {

// Cost of a multiplication of a walked sparse row relative to a dense row, which shares its
// registers with eleven others. Measured: 4 at 1 % nonzeros, 3 at 25 %, of 10,000 columns
// (bench/sparse_bench). Rows with more than one nonzero in four are therefore made dense.
inline constexpr double kSparseCost = 4;

// Immutable, thread-safe.
template <typename T>
class InputRunner {
 public:
  // `walks_sparse`: sparse rows need not become dense for stages that read only the entries.
  InputRunner(const EngineInput& input, bool walks_sparse)
      : input_(input), walks_sparse_(walks_sparse) {}
  virtual ~InputRunner() = default;

  const EngineInput& input() const { return input_; }
  // Whether these rows stay sparse until the first product; the bits are the same. A tile has
  // either walked rows only or none.
  bool Walks(const ExamplesView& rows) const {
    const SparseRowsView* const sparse = rows.sparse();
    return sparse != nullptr && walks_sparse_ &&
           static_cast<double>(sparse->entries()) * kSparseCost <=
               static_cast<double>(sparse->rows) * static_cast<double>(input_.columns);
  }

  // Returns the rows of a tile, computed in float64 whatever their type, and rounded once. They
  // live until `scratch` is used for the next tile. REQUIRES: at most kMaxTileRows rows if they are
  // walked, else kDenseTileRows; Walks gives the same answer for all.
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
