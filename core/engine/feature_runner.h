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
  kInputs,    // what its features hide, as exp(−∞) = 0 hides a norm
  kFeatures,  // and each feature: it is the last stage
};

// Immutable, thread-safe.
template <typename T>
class FeatureRunner {
 public:
  virtual ~FeatureRunner() = default;

  // z[i][j] = feature j of row i, with features() numbers a row. Sets finite[i] to false if the
  // quantity that `check` names is not finite in row i, and leaves it unchanged otherwise. The rows
  // come from the plan's input stage; they are sparse only if takes_sparse().
  virtual void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
                   EngineScratch& scratch) const = 0;

  virtual int64_t features() const = 0;
  // Whether the stage reads only the entries of sparse rows, so that they need not become dense.
  virtual bool takes_sparse() const { return false; }
  virtual int64_t memory_bytes() const = 0;
  // Multiplications for a dense row; the share of them that a sparse row needs per number that it
  // holds; and multiplications per byte of a string.
  virtual int64_t multiplications() const = 0;
  virtual int64_t multiplications_of_numbers() const { return 0; }
  virtual double multiplications_per_byte() const { return 0; }

  // A cause of overflow other than the row's size, and the remedy, for the error message.
  virtual absl::string_view overflow_cause() const { return ""; }
  virtual absl::string_view overflow_remedy() const {
    return "scale the inputs, build with standardize, or serve in float64";
  }
};

// Sets finite[i] to false for each of `count` rows of `columns` numbers that contains a non-finite
// number.
template <typename T>
void CheckFinite(const T* const* rows, int64_t count, int64_t columns, bool* finite) {
  for (int64_t i = 0; i < count; ++i) {
    if (!AllFinite(rows[i], columns)) finite[i] = false;
  }
}

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_FEATURE_RUNNER_H_
