#include "core/certificate/self_check.h"

#include <algorithm>
#include <memory>

#include "absl/status/statusor.h"
#include "core/linalg/panel_product.h"
#include "core/plan/engine.h"
#include "core/status/check.h"

namespace phimap {

int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns) {
  constexpr int64_t kBytes = 256 << 10;
  const int64_t row_bytes = 4 * input_columns + 8 * output_columns;
  return std::clamp<int64_t>(kBytes / row_bytes, 1, 4);
}

std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows) {
  if (!VectorTargetFuses()) return std::nullopt;
  const absl::StatusOr<std::unique_ptr<const Engine>> engine = Engine::Load(plan);
  if (!engine.ok()) return std::nullopt;
  SelfCheck check;
  check.rows = rows.rows();
  check.rows_float32_le.assign(reinterpret_cast<const char*>(rows.data()),
                               static_cast<size_t>(rows.size()) * sizeof(float));
  check.features_le.resize(static_cast<size_t>(rows.rows() * (*engine)->output_columns() *
                                               FloatTypeBytes((*engine)->serving_type())));
  TransformPart part{.rows = {.data = check.rows_float32_le.data(),
                              .type = FloatType::kFloat32,
                              .rows = rows.rows(),
                              .columns = rows.cols()},
                     .features = check.features_le.data(),
                     .status = absl::OkStatus()};
  EngineScratch scratch;
  (*engine)->Transform(absl::MakeSpan(&part, 1), scratch);
  if (!part.status.ok()) return std::nullopt;
  return check;
}

}  // namespace phimap
