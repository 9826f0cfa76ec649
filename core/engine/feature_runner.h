// The feature stage of an engine: rows of a tile become features.
#ifndef PHIMAP_CORE_ENGINE_FEATURE_RUNNER_H_
#define PHIMAP_CORE_ENGINE_FEATURE_RUNNER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/engine/engine_scratch.h"
#include "core/engine/tile.h"

namespace phimap {

// Values of a feature stage that are checked for overflow.
enum class FiniteCheck {
  kInputs,    // values whose overflow the features hide, as exp(−∞) = 0 hides a norm of ∞
  kFeatures,  // those values, and each feature, for the last stage
};

// Immutable, thread-safe.
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

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_FEATURE_RUNNER_H_
