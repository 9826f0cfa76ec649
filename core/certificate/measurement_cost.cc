#include "core/certificate/measurement_cost.h"

#include <algorithm>
#include <iterator>

#include "core/certificate/fidelity.h"
#include "core/certificate/held_out_features.h"
#include "core/certificate/kernel_error.h"

namespace phimap {
namespace {

// Returns the number of kernel values in all tiles of KernelError, for h rows.
double PairsOf(int64_t h) {
  double pairs = 0;
  for (int64_t t = 0; t < PairTileCount(h); ++t) {
    const auto [begin, end, first] = PairTileAt(h, t);
    pairs += static_cast<double>(end - begin) * static_cast<double>(end - first);
  }
  return pairs;
}

// Returns the work of comparing Gram matrices: that of the kernel, those of the features as served
// and in float64, and the inverses of two of them for each λ and once for the serving type.
Work WorkOfFidelity(const MeasurementShape& shape) {
  const double m = static_cast<double>(std::min(shape.rows, kMaxFidelityRows));
  Work work = WorkOfKernelBlock(1, TiledTriangle(static_cast<int64_t>(m)),
                                static_cast<double>(shape.columns), *shape.value);
  const double types = shape.is_float32 ? 2 : 1;
  work.product_flops += types * m * (m + 1) * static_cast<double>(shape.output_columns);
  const double inverses = 2 * (static_cast<double>(std::size(kFidelityLambdas)) + types - 1);
  work.factor_flops += inverses * 2 * m * m * m;
  work.elements += 3 * inverses * m * m;
  return work;
}

}  // namespace

Work WorkOfMeasurement(const MeasurementShape& shape) {
  if (shape.rows < kMinHeldOutRows) return {};
  const double h = static_cast<double>(shape.rows);
  const double columns = static_cast<double>(shape.columns);
  const double outputs = static_cast<double>(shape.output_columns);
  // Both plans transform the rows. Then their features are widened and compared, which takes as
  // long as 2.5 rbf values per feature.
  Work work{.product_flops = 2 * h * shape.row.product_flops,
            .elements = 2 * h * (shape.row.elements + 2.5 * outputs)};
  if (!shape.value.has_value()) return work;
  const ValueWork compared{shape.value->products, shape.value->elements + 1};
  // Each pair takes a kernel value, an inner product of features, and a comparison.
  const double pairs = PairsOf(shape.rows);
  work += WorkOfKernelBlock(1, pairs, columns, compared);
  work.product_flops += 2 * pairs * outputs;
  work += WorkOfFidelity(shape);
  if (shape.centre_landmarks > 0) {
    const double landmarks = static_cast<double>(shape.centre_landmarks);
    work += WorkOfKernelBlock(h, landmarks, columns, *shape.value);
    if (shape.centre_gram) work += WorkOfKernelBlock(landmarks, landmarks, columns, *shape.value);
  }
  if (shape.rank == 0) return work;
  const double rank = static_cast<double>(shape.rank);
  work += WorkOfKernelBlock(rank, h, columns, compared);
  work.product_flops += rank * rank * h;
  return work;
}

int64_t BytesOfMeasurement(const MeasurementShape& shape, int threads) {
  if (shape.rows < kMinHeldOutRows) return 0;
  constexpr int64_t kDouble = sizeof(double);
  const int64_t features = 2 * shape.rows * shape.output_columns * kDouble;
  // The peak is the larger of two steps: loading the second plan's engine, and later holding the
  // rows after the input stage and one tile per thread.
  const int64_t engine = shape.plan_numbers * kDouble;
  const int64_t tile =
      kHeldOutTileRows *
      std::max({std::min(shape.rows, 2 * kHeldOutTileRows), shape.rank, shape.centre_landmarks}) *
      kDouble;
  const int64_t tiles = std::min<int64_t>(threads, HeldOutTileCount(shape.rows)) * tile;
  // Comparing Gram matrices holds two of them, and two smoothers for each λ.
  const int64_t m = std::min(shape.rows, kMaxFidelityRows);
  const auto matrices = static_cast<int64_t>(2 + 2 * std::size(kFidelityLambdas));
  const int64_t grams = shape.value.has_value() ? matrices * m * m * kDouble : 0;
  return features + std::max(engine, shape.rows * shape.columns * kDouble + std::max(tiles, grams));
}

}  // namespace phimap
