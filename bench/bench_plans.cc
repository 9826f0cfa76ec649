#include "bench/bench_plans.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/normal_matrix.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/status/check.h"

namespace phimap::bench {

std::vector<BenchMapping> MappingsOf(int64_t inputs, int64_t d) {
  return {{"F1", inputs, d, d, WKind::kNone},
          {"F2", inputs, d, d, WKind::kTriangular},
          {"F3", inputs, d, d / 8, WKind::kDense},
          {"RFF", inputs, d, d, WKind::kNone, Elementwise::kCos},
          {"JL", inputs, d, d, WKind::kNone, Elementwise::kNone}};
}

BenchNumbers MakeNumbers(const BenchMapping& mapping, std::mt19937_64& random) {
  BenchNumbers numbers;
  numbers.landmarks = NormalMatrix<float>(mapping.landmarks, mapping.inputs, 1, random);
  if (mapping.w == WKind::kNone) return numbers;
  // W is scaled down by the root of the number of landmarks, so that features are about as large as
  // kernel values.
  const double scale = 1 / std::sqrt(static_cast<double>(mapping.landmarks));
  numbers.w = NormalMatrix<float>(mapping.landmarks, mapping.outputs, scale, random);
  if (mapping.w == WKind::kTriangular) {
    for (int64_t k = 0; k < mapping.landmarks; ++k) std::fill_n(numbers.w.row(k), k, 0.0f);
  }
  return numbers;
}

TriangularProjection<float> PackedTriangle(const Matrix<float>& w) {
  TriangularProjection<float> triangle;
  triangle.order = w.rows();
  triangle.elements = AlignedArray<float>(triangle.ElementCount(w.rows()));
  for (int64_t k = 0; k < w.rows(); ++k) {
    std::copy_n(w.row(k) + k, w.cols() - k, triangle.elements.data() + triangle.RowOffset(k));
  }
  return triangle;
}

KernelProgram ProgramOf(const BenchMapping& mapping) {
  if (mapping.elementwise == Elementwise::kNone) return KernelProgram();
  if (mapping.elementwise == Elementwise::kCos) {
    return *KernelProgram::FromOps(
        {{.code = KernelOpCode::kPushShiftedProduct}, {.code = KernelOpCode::kCosTurns, .a = 1}});
  }
  const auto kernel = KernelExpression::Parse(absl::StrCat("rbf(gamma=", mapping.gamma(), ")"));
  PHIMAP_CHECK(kernel.ok());
  return KernelProgram::Compile(*kernel);
}

Plan MakePlan(const BenchMapping& mapping, const BenchNumbers& numbers) {
  ServingStages<float> stages;
  ProductFeatures<float> features{numbers.landmarks.Clone(), ProgramOf(mapping), {}};
  // The phases are 0, but the engine still adds them.
  if (mapping.elementwise == Elementwise::kCos) {
    features.offsets.assign(static_cast<size_t>(mapping.landmarks), 0.0f);
  }
  stages.features = std::move(features);
  if (mapping.w == WKind::kTriangular) stages.projection = PackedTriangle(numbers.w);
  if (mapping.w == WKind::kDense) stages.projection = DenseProjection<float>{numbers.w.Clone()};
  Plan plan;
  plan.input.columns = mapping.inputs;
  plan.stages = std::move(stages);
  return plan;
}

}  // namespace phimap::bench
