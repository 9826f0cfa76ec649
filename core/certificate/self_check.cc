#include "core/certificate/self_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// Returns the bytes of the features, or OUT_OF_RANGE if a row's features overflow.
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

// Returns the largest |feature|, or 0 if it is smaller than the type's smallest normal number.
template <typename T>
double Largest(const std::string& features_le) {
  double largest = 0;
  for (size_t at = 0; at < features_le.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, features_le.data() + at, sizeof(T));
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  return largest < static_cast<double>(std::numeric_limits<T>::min()) ? 0 : largest;
}

// Returns the largest |feature| of one row, or 0 if all features vanish or any overflows.
double LargestFeature(const Engine& engine, const std::vector<float>& row) {
  const absl::StatusOr<std::string> features =
      FeaturesOf(engine, {.data = reinterpret_cast<const char*>(row.data()),
                          .type = FloatType::kFloat32,
                          .rows = 1,
                          .columns = static_cast<int64_t>(row.size())});
  if (!features.ok()) return 0;
  return engine.serving_type() == FloatType::kFloat32 ? Largest<float>(*features)
                                                      : Largest<double>(*features);
}

// Returns the point anchor + share·(row − anchor) in float32, or nullopt if it overflows.
std::optional<std::vector<float>> PointTowards(absl::Span<const double> anchor,
                                               absl::Span<const float> row, double share) {
  std::vector<float> point(row.size());
  for (size_t j = 0; j < row.size(); ++j) {
    const double value = anchor[j] + share * (row[j] - anchor[j]);
    if (!(std::abs(value) <= std::numeric_limits<float>::max())) return std::nullopt;
    point[j] = static_cast<float>(value);
  }
  return point;
}

// Tries `row` itself, then points on the way to `anchor`. Returns the first whose largest feature
// is not 0 and is at least 1/1024 of the anchor's largest feature. Returns nullopt if there is
// none.
std::optional<std::vector<float>> ReferenceVector(const Engine& engine, absl::Span<const float> row,
                                                  absl::Span<const double> anchor) {
  const std::vector<float> made_up(row.begin(), row.end());
  const double made_up_feature = LargestFeature(engine, made_up);
  if (anchor.empty()) {
    return made_up_feature > 0 ? std::make_optional(made_up) : std::nullopt;
  }
  const std::optional<std::vector<float>> end = PointTowards(anchor, row, 0);
  const double least = end.has_value() ? LargestFeature(engine, *end) / 1024 : 0;
  if (made_up_feature > 0 && made_up_feature >= least) return made_up;
  constexpr int kHalvings = 22;  // after 22 halvings, a float32 row hardly moves
  for (int i = 1; i <= kHalvings; ++i) {
    std::optional<std::vector<float>> point = PointTowards(anchor, row, std::ldexp(1.0, -i));
    if (!point.has_value()) continue;
    const double feature = LargestFeature(engine, *point);
    if (feature > 0 && feature >= least) return point;
  }
  return least > 0 ? end : std::nullopt;
}

absl::Status Failed(absl::string_view reason, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason, "", absl::StrCat("self-check: ", what));
}

// Checks the number of rows first, so that the sizes multiplied below cannot overflow.
absl::Status CheckSelfCheckShape(const Engine& engine, const SelfCheck& check) {
  if (check.rows < 1 || check.rows > kMaxSelfCheckRows) {
    return Failed(
        reason::kSelfCheckShapeMismatch,
        absl::StrCat("expected 1..", kMaxSelfCheckRows, " reference vectors, got ", check.rows));
  }
  const int64_t rows_bytes = check.rows * engine.input_columns() * 4;
  const int64_t features_bytes =
      check.rows * engine.output_columns() * FloatTypeBytes(engine.serving_type());
  if (static_cast<int64_t>(check.rows_float32_le.size()) == rows_bytes &&
      static_cast<int64_t>(check.features_le.size()) == features_bytes) {
    return absl::OkStatus();
  }
  return Failed(reason::kSelfCheckShapeMismatch,
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

std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows,
                                       ConstMatrixView<double> anchors) {
  if (!VectorTargetFuses()) return std::nullopt;
  const absl::StatusOr<std::unique_ptr<const Engine>> engine = Engine::Load(plan);
  if (!engine.ok()) return std::nullopt;
  SelfCheck check;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    absl::Span<const double> anchor;
    if (anchors.rows() > 0) anchor = absl::MakeConstSpan(anchors.row(i), anchors.cols());
    const std::optional<std::vector<float>> row =
        ReferenceVector(**engine, absl::MakeConstSpan(rows.row(i), rows.cols()), anchor);
    if (!row.has_value()) continue;
    check.rows_float32_le.append(reinterpret_cast<const char*>(row->data()),
                                 row->size() * sizeof(float));
    ++check.rows;
  }
  if (check.rows == 0) return std::nullopt;
  absl::StatusOr<std::string> features = FeaturesOf(**engine, RowsOf(check, rows.cols()));
  if (!features.ok()) return std::nullopt;
  check.features_le = *std::move(features);
  return check;
}

absl::StatusOr<bool> VerifySelfCheck(const Engine& engine, const SelfCheck& check) {
  PHIMAP_RETURN_IF_ERROR(CheckSelfCheckShape(engine, check));
  const RowsView rows = RowsOf(check, engine.input_columns());
  if (const absl::Status finite = CheckFinite(rows); !finite.ok()) {
    return Failed(reason::kSelfCheckShapeMismatch, finite.message());
  }
  if (!VectorTargetFuses()) return false;
  const absl::StatusOr<std::string> features = FeaturesOf(engine, rows);
  if (!features.ok()) return Failed(reason::kSelfCheckFailed, features.status().message());
  if (*features == check.features_le) return true;
  const auto differs = std::mismatch(features->begin(), features->end(), check.features_le.begin());
  const int64_t number =
      (differs.first - features->begin()) / FloatTypeBytes(engine.serving_type());
  return Failed(reason::kSelfCheckFailed,
                absl::StrCat("feature ", number % engine.output_columns(), " of reference vector ",
                             number / engine.output_columns(),
                             " is not bit-for-bit the same on this machine"));
}

}  // namespace phimap
