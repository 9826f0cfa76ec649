#include "core/certificate/held_out_features.h"

#include <algorithm>
#include <memory>

#include "core/engine/engine.h"
#include "core/plan/rows.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Multiplications between two checkpoints: a few milliseconds on one core.
constexpr int64_t kTileMultiplications = 64'000'000;

// Writes the features of each row to `out`, which has the engine's columns and serving type.
// Errors: OUT_OF_RANGE like Engine, with the index of the row in its tile; the errors of `control`.
template <typename Float>
absl::Status TransformTiles(const Engine& engine, const ExamplesView& rows, MatrixView<Float> out,
                            const TileControl& control) {
  const int64_t tile_rows = std::max<int64_t>(
      48, kTileMultiplications / std::max<int64_t>(1, engine.multiplications_per_row()));
  const int64_t tiles = (rows.rows() + tile_rows - 1) / tile_rows;
  std::vector<absl::Status> statuses(static_cast<size_t>(tiles));
  const auto transform = [&](int64_t t) {
    const int64_t first = t * tile_rows;
    TransformPart part{.rows = rows.Slice(first, std::min(tile_rows, rows.rows() - first)),
                       .features = &out(first, 0),
                       .status = absl::OkStatus()};
    EngineScratch scratch;
    engine.Transform(absl::MakeSpan(&part, 1), scratch);
    statuses[t] = part.status;
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), tiles, control, transform));
  for (const absl::Status& status : statuses) PHIMAP_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace

HeldOutExamples::HeldOutExamples(ConstMatrixView<double> rows,
                                 const std::vector<std::string>* strings) {
  PHIMAP_CHECK(rows.stride() == rows.cols());
  if (strings == nullptr) {
    view_ = RowsView{.data = reinterpret_cast<const char*>(rows.data()),
                     .type = FloatType::kFloat64,
                     .rows = rows.rows(),
                     .columns = rows.cols()};
    return;
  }
  int64_t bytes = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    named_.push_back(&(*strings)[static_cast<size_t>(rows(i, 0))]);
    bytes += static_cast<int64_t>(named_.back()->size());
  }
  // kText works for bytes too: an engine for bytes accepts text, but not the other way round.
  view_ = StringsView{ExampleKind::kText, named_.data(), rows.rows(), bytes};
}

FeatureLengths::FeatureLengths(const Matrix<double>& served_features,
                               const Matrix<double>& reference_features) {
  const int64_t columns = served_features.cols();
  std::vector<double> apart(static_cast<size_t>(columns));
  for (int64_t i = 0; i < served_features.rows(); ++i) {
    const double* const f = served_features.row(i);
    const double* const exact = reference_features.row(i);
    for (int64_t j = 0; j < columns; ++j) apart[j] = f[j] - exact[j];
    served.push_back(SquaredNorm(f, columns));
    reference.push_back(SquaredNorm(exact, reference_features.cols()));
    difference.push_back(SquaredNorm(apart.data(), columns));
  }
}

absl::StatusOr<Matrix<double>> FeaturesOf(const Plan& plan, ConstMatrixView<double> places,
                                          const TileControl& control,
                                          const std::vector<std::string>* strings) {
  const HeldOutExamples examples(places, strings);
  const ExamplesView& rows = examples.view();
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Engine> engine, Engine::Load(plan));
  if (engine->serving_type() == FloatType::kFloat64) {
    Matrix<double> features = Matrix<double>::Uninit(rows.rows(), engine->output_columns());
    PHIMAP_RETURN_IF_ERROR(TransformTiles(*engine, rows, features.view(), control));
    return features;
  }
  Matrix<float> features = Matrix<float>::Uninit(rows.rows(), engine->output_columns());
  PHIMAP_RETURN_IF_ERROR(TransformTiles(*engine, rows, features.view(), control));
  return Converted<double, float>(features.view());
}

}  // namespace phimap
