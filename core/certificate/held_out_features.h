// Computes a plan's features of held-out rows, for its certificate.
#ifndef PHIMAP_CORE_CERTIFICATE_HELD_OUT_FEATURES_H_
#define PHIMAP_CORE_CERTIFICATE_HELD_OUT_FEATURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"

namespace phimap {

// Number of held-out rows in a tile, and number of tiles for `rows` rows.
inline constexpr int64_t kHeldOutTileRows = 256;
inline int64_t HeldOutTileCount(int64_t rows) {
  return (rows + kHeldOutTileRows - 1) / kHeldOutTileRows;
}

// Held-out rows in the form that an engine takes. If examples are strings, each row holds the index
// of a string.
class HeldOutExamples {
 public:
  // `strings` is null for rows of numbers. REQUIRES: `rows` has no gaps between rows; `rows` and
  // `strings` outlive this object.
  HeldOutExamples(ConstMatrixView<double> rows, const std::vector<std::string>* strings);
  HeldOutExamples(const HeldOutExamples&) = delete;
  HeldOutExamples& operator=(const HeldOutExamples&) = delete;

  const ExamplesView& view() const { return view_; }

 private:
  std::vector<const std::string*> named_;
  ExamplesView view_;
};

// Squared lengths of each held-out row's features, from which several measurements are computed.
struct FeatureLengths {
  FeatureLengths(const Matrix<double>& served_features, const Matrix<double>& reference_features);
  int64_t rows() const { return static_cast<int64_t>(served.size()); }

  std::vector<double> served;
  std::vector<double> reference;
  // Squared length of the served features minus the reference.
  std::vector<double> difference;
};

// Returns the plan's features of each row, widened to float64. For a plan of strings, each row
// holds an index into `strings`. Returns OUT_OF_RANGE like Engine, the errors of Engine::Load, and
// any error that `control` returns between tiles.
absl::StatusOr<Matrix<double>> FeaturesOf(const Plan& plan, ConstMatrixView<double> rows,
                                          const TileControl& control,
                                          const std::vector<std::string>* strings = nullptr);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_HELD_OUT_FEATURES_H_
