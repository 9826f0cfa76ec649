#include "core/certificate/self_check.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/linalg/panel_product.h"
#include "core/plan/rows.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

RowsView RowsOf(const SelfCheck& check, int64_t columns) {
  return {.data = check.rows_float32_le.data(),
          .type = FloatType::kFloat32,
          .rows = check.rows,
          .columns = columns};
}

// The features' bytes; OUT_OF_RANGE when a row's overflow.
absl::StatusOr<std::string> FeaturesOf(const Engine& engine, const RowsView& rows) {
  std::string bytes(static_cast<size_t>(rows.rows * engine.output_columns() *
                                        FloatTypeBytes(engine.serving_type())),
                    '\0');
  TransformPart part{.rows = rows, .features = bytes.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  PHIMAP_RETURN_IF_ERROR(part.status);
  return bytes;
}

absl::Status Failed(absl::string_view reason, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason, "", absl::StrCat("self-check: ", what));
}

// The bounds come first: no product of the sizes wraps.
absl::Status CheckSelfCheckShape(const Engine& engine, const SelfCheck& check) {
  if (check.rows < 1 || check.rows > kMaxSelfCheckRows) {
    return Failed("SELF_CHECK_SHAPE", absl::StrCat("expected 1..", kMaxSelfCheckRows,
                                                   " golden rows, got ", check.rows));
  }
  const int64_t rows_bytes = check.rows * engine.input_columns() * 4;
  const int64_t features_bytes =
      check.rows * engine.output_columns() * FloatTypeBytes(engine.serving_type());
  if (static_cast<int64_t>(check.rows_float32_le.size()) == rows_bytes &&
      static_cast<int64_t>(check.features_le.size()) == features_bytes) {
    return absl::OkStatus();
  }
  return Failed("SELF_CHECK_SHAPE",
                absl::StrCat("expected ", rows_bytes, " bytes of rows and ", features_bytes,
                             " of features, got ", check.rows_float32_le.size(), " and ",
                             check.features_le.size()));
}

}  // namespace

int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns) {
  constexpr int64_t kBytes = 256 << 10;
  const int64_t row_bytes = 4 * input_columns + 8 * output_columns;
  return std::clamp<int64_t>(kBytes / row_bytes, 1, kMaxSelfCheckRows);
}

std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows) {
  if (!VectorTargetFuses()) return std::nullopt;
  const absl::StatusOr<std::unique_ptr<const Engine>> engine = Engine::Load(plan);
  if (!engine.ok()) return std::nullopt;
  SelfCheck check;
  check.rows = rows.rows();
  check.rows_float32_le.assign(reinterpret_cast<const char*>(rows.data()),
                               static_cast<size_t>(rows.size()) * sizeof(float));
  absl::StatusOr<std::string> features = FeaturesOf(**engine, RowsOf(check, rows.cols()));
  if (!features.ok()) return std::nullopt;
  check.features_le = *std::move(features);
  return check;
}

absl::StatusOr<bool> VerifySelfCheck(const Engine& engine, const SelfCheck& check) {
  PHIMAP_RETURN_IF_ERROR(CheckSelfCheckShape(engine, check));
  const RowsView rows = RowsOf(check, engine.input_columns());
  if (const absl::Status finite = CheckFinite(rows); !finite.ok()) {
    return Failed("SELF_CHECK_SHAPE", finite.message());
  }
  if (!VectorTargetFuses()) return false;
  const absl::StatusOr<std::string> features = FeaturesOf(engine, rows);
  if (!features.ok()) return Failed("SELF_CHECK_FAILED", features.status().message());
  if (*features == check.features_le) return true;
  const auto differs = std::mismatch(features->begin(), features->end(), check.features_le.begin());
  const int64_t number =
      (differs.first - features->begin()) / FloatTypeBytes(engine.serving_type());
  return Failed("SELF_CHECK_FAILED",
                absl::StrCat("feature ", number % engine.output_columns(), " of golden row ",
                             number / engine.output_columns(), " has other bits here"));
}

}  // namespace phimap
