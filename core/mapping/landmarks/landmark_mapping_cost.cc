// Costs of the builders of landmark_mapping.h.
#include <algorithm>

#include "core/kernel/kernel_work.h"
#include "core/linalg/triangular_inverse.h"
#include "core/mapping/landmarks/landmark_mapping.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {
namespace {

constexpr int64_t kDouble = sizeof(double);

// Work of FactorLandmarks.
Work FactorWork(const LandmarkShape& shape) {
  Work work = WorkOfKernelBlock(1, TiledTriangle(shape.landmarks),
                                static_cast<double>(shape.columns), shape.value);
  return work += WorkOfFactorPivoted(shape.landmarks, shape.rank);
}

// Returns the bytes of the factor and the pivots' rows, which are kept for the certificate.
int64_t FactorBytes(const LandmarkShape& shape) {
  return kDouble * shape.rank * (shape.rank + shape.columns);
}

// Returns the peak memory of FactorLandmarks: the rounded rows and the Gram matrix, plus tiles of
// the Gram matrix at first or the factor at the end.
int64_t FactoringBytes(const LandmarkShape& shape) {
  const int64_t d = shape.landmarks;
  const int64_t tiles = std::min<int64_t>(shape.threads, (d + 255) / 256);
  return kDouble * d * (shape.columns + SpreadStride<double>(d)) +
         std::max(FactorBytes(shape), kDouble * 256 * d * tiles);
}

// Sets the sizes of a plan with r kernel values and a projection of `weights` numbers. For a linear
// kernel, both are folded into one matrix of `outputs` rows.
void SetPlan(const LandmarkShape& shape, int64_t weights, int64_t outputs, MappingCost& cost) {
  cost.output_columns = outputs;
  cost.plan_numbers = shape.linear ? outputs * shape.columns : shape.rank * shape.columns + weights;
  // A kernel without inner products needs no products with the pivots.
  const double products = shape.linear ? 1 : shape.value.products;
  cost.row.product_flops =
      2 * static_cast<double>(cost.plan_numbers) -
      2 * (1 - products) * static_cast<double>(shape.rank) * static_cast<double>(shape.columns);
  cost.row.elements = shape.linear ? 0 : static_cast<double>(shape.rank) * shape.value.elements;
}

// Sets the memory of F2 and F3. `passing` bytes are needed only temporarily, while the weights and
// the plans are made.
void SetBytes(const LandmarkShape& shape, int64_t passing, MappingCost& cost) {
  cost.kept_bytes = FactorBytes(shape) + PlanPairBytes(shape.serving_type, cost.plan_numbers);
  cost.build_bytes = std::max(FactoringBytes(shape), cost.kept_bytes + passing);
}

}  // namespace

LandmarkShape LandmarkShapeOf(const MappingShape& shape) {
  const BuildSpec& spec = shape.spec;
  const int64_t columns = shape.columns;
  double factor = 0;
  const int64_t landmarks = spec.mapping.landmarks;
  if (spec.remote.has_value()) {
    // With precomputed() values, a plan stores only the row number of each landmark.
    return {.landmarks = landmarks,
            .columns = spec.is_precomputed() ? 1 : columns,
            .rank = landmarks,
            .dimensions = spec.mapping.dimensions,
            .projection = spec.mapping.projection,
            .serving_type = shape.serving_type,
            .threads = shape.threads};
  }
  return {.landmarks = landmarks,
          .columns = columns,
          .rank = std::min(landmarks, FeatureDimension(spec.kernel, columns).value_or(landmarks)),
          .dimensions = spec.mapping.dimensions,
          .projection = spec.mapping.projection,
          .serving_type = shape.serving_type,
          .linear = spec.kernel.IsScaledLinear(&factor),
          .value = WorkOfValue(spec.kernel, columns),
          .threads = shape.threads};
}

MappingCost CostOfF1(const LandmarkShape& shape) {
  MappingCost cost;
  cost.plan_numbers = shape.landmarks * shape.columns;
  cost.output_columns = shape.landmarks;
  cost.row.product_flops = 2 * shape.value.products * static_cast<double>(cost.plan_numbers);
  cost.row.elements = static_cast<double>(shape.landmarks) * shape.value.elements;
  cost.work.elements = static_cast<double>(cost.plan_numbers);
  cost.kept_bytes = PlanPairBytes(shape.serving_type, cost.plan_numbers);
  cost.build_bytes = cost.kept_bytes + kDouble * cost.plan_numbers;
  return cost;
}

MappingCost CostOfF2(const LandmarkShape& shape) {
  const int64_t r = shape.rank;
  const double rank = static_cast<double>(r);
  MappingCost cost{.work = FactorWork(shape), .rank = r};
  cost.work += WorkOfTransposedInverse(r);
  if (shape.linear) cost.work.product_flops += 2 * rank * rank * static_cast<double>(shape.columns);
  SetPlan(shape, r * (r + 1) / 2, r, cost);
  // Temporary: the inverse of the factor and a copy of the pivots' rows.
  SetBytes(shape, kDouble * r * (r + shape.columns), cost);
  cost.work.elements += 4 * static_cast<double>(cost.plan_numbers);
  return cost;
}

MappingCost CostOfF3(const LandmarkShape& shape) {
  const double rank = static_cast<double>(shape.rank);
  const double dimensions = static_cast<double>(shape.dimensions);
  MappingCost cost{.work = FactorWork(shape), .rank = shape.rank};
  cost.work.elements += ElementsOfEntry(shape.projection) * rank * dimensions;
  cost.work.product_flops += rank * rank * dimensions;
  if (shape.linear) {
    cost.work.product_flops += 2 * rank * dimensions * static_cast<double>(shape.columns);
  }
  SetPlan(shape, shape.rank * shape.dimensions, shape.dimensions, cost);
  // Temporary: the weights and a copy of the pivots' rows.
  SetBytes(shape, kDouble * shape.rank * (shape.dimensions + shape.columns), cost);
  cost.work.elements += 2 * static_cast<double>(cost.plan_numbers);
  return cost;
}

}  // namespace phimap
