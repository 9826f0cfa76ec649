#include "core/mapping/build/drift_step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/certificate/held_out_features.h"
#include "core/drift/reference_making.h"
#include "core/linalg/matrix.h"
#include "core/plan/residual.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

RowsView ViewOf(ConstMatrixView<double> features) {
  PHIMAP_CHECK(features.stride() == features.cols());
  return {reinterpret_cast<const char*>(features.data()), FloatType::kFloat64, features.rows(),
          features.cols()};
}

// The rows of both parts of a reference, with their features.
struct Parts {
  ConstMatrixView<double> choosing;
  ConstMatrixView<double> choosing_features;
  ConstMatrixView<double> held_out;
  ConstMatrixView<double> held_out_features;
};

// Returns the first rows of `parts`' held-out rows as rows to choose from.
Parts DividedHeldOut(const Parts& parts) {
  const int64_t count = std::min(parts.held_out.rows() / 4, kMaxChoosingRows);
  const int64_t left = parts.held_out.rows() - count;
  return {.choosing = parts.held_out.Rows(0, count),
          .choosing_features = parts.held_out_features.Rows(0, count),
          .held_out = parts.held_out.Rows(count, left),
          .held_out_features = parts.held_out_features.Rows(count, left)};
}

void AddRanges(const BuildSample& sample, DriftReference& reference) {
  const ColumnMoments& moments = sample.stream.moments();
  reference.stream_rows = std::max(reference.rows, moments.count());
  for (int64_t j = 0; j < moments.columns(); ++j) {
    reference.low.push_back(RoundedDown(moments.min(j)));
    reference.high.push_back(RoundedUp(moments.max(j)));
  }
}

// Returns the number of pool rows that were not drawn as landmarks.
int64_t SparePoolRows(const CertificationTask& task, const BuiltMapping& mapping) {
  const LandmarkCount* const found = task.kernel.found_count();
  int64_t drawn = 0;
  if (task.spec.mapping.has_landmarks()) {
    drawn = found != nullptr ? found->landmarks : task.spec.mapping.landmarks;
    drawn = std::max(drawn, static_cast<int64_t>(mapping.used.size()));
  }
  return task.sample.pool_rows() - std::max<int64_t>(drawn - task.spec.mapping.given_rows(), 0);
}

absl::StatusOr<std::optional<DriftReference>> MakeReference(const CertificationTask& task,
                                                            const BuiltMapping& mapping,
                                                            const EngineRows& rows,
                                                            const Parts& parts) {
  const HeldOutExamples choosing(parts.choosing, rows.strings);
  const HeldOutExamples held_out(parts.held_out, rows.strings);
  const std::optional<Residual> residual =
      Residual::Of(mapping.served,
                   {.spec_text = task.spec.mapping.ToText(), .kernel_text = task.kernel.ToText()});
  PHIMAP_ASSIGN_OR_RETURN(
      DriftReference reference,
      MakeDriftReference({.choosing = {choosing.view(), ViewOf(parts.choosing_features)},
                          .held_out = {held_out.view(), ViewOf(parts.held_out_features)},
                          .residual = residual.has_value() ? &*residual : nullptr,
                          .has_columns = rows.has_columns}));
  if (rows.has_columns) AddRanges(task.sample, reference);
  return std::optional<DriftReference>(std::move(reference));
}

// Returns the number of rows that scores are chosen from.
int64_t ChoosingRows(const ReferenceShape& shape) {
  return std::min(kMaxChoosingRows, shape.pool_rows >= kLeastChoosingRows
                                        ? shape.pool_rows
                                        : shape.held_out_rows / 4);
}

// Whether a build of this shape gets a reference.
bool HasReference(const ReferenceShape& shape) {
  const bool from_pool = shape.pool_rows >= kLeastChoosingRows;
  return shape.held_out_rows - (from_pool ? 0 : ChoosingRows(shape)) >= kMinReferenceRows;
}

int64_t DirectionCount(const ReferenceShape& shape) {
  return std::min({kPrincipalDirections, shape.output_columns, ChoosingRows(shape)});
}

int64_t ScoreCount(const ReferenceShape& shape) {
  return std::min(kMaxScores,
                  (shape.has_residual ? 1 : 0) + 1 + DirectionCount(shape) + shape.columns);
}

}  // namespace

int64_t ReferenceBytes(const ReferenceShape& shape) {
  if (!HasReference(shape)) return 0;
  const int64_t edges = std::min(kMaxBins, ChoosingRows(shape)) - 1;
  constexpr int64_t kFrameBytes = 48;
  constexpr int64_t kScoreBytes = 9;
  return kFrameBytes + int64_t{sizeof(float)} * DirectionCount(shape) * shape.output_columns +
         int64_t{sizeof(double)} * shape.output_columns +
         2 * int64_t{sizeof(float)} * shape.columns +
         ScoreCount(shape) * (kScoreBytes + edges * int64_t{sizeof(double)} +
                              (edges + 1) * int64_t{sizeof(uint16_t)});
}

Work ReferenceWork(const ReferenceShape& shape, const Work& row) {
  if (!HasReference(shape)) return {};
  const double chosen = static_cast<double>(ChoosingRows(shape));
  const double m = std::min(chosen, static_cast<double>(kMaxDirectionRows));
  const double d = static_cast<double>(shape.output_columns);
  const double directions = static_cast<double>(DirectionCount(shape));
  const double scored = chosen + static_cast<double>(shape.held_out_rows);
  Work work;
  if (shape.pool_rows >= kLeastChoosingRows) {
    work.product_flops += chosen * row.product_flops;
    work.elements += chosen * row.elements;
  }
  work.product_flops += m * (m + 1) * d + 2 * directions * m * d;
  work.factor_flops += 9 * m * m * m;
  // A product of features with a direction takes about a quarter as long as a kernel value.
  work.elements += scored * (d * directions / 4 + static_cast<double>(shape.columns));
  return work;
}

int64_t ReferenceMemoryBytes(const ReferenceShape& shape) {
  if (!HasReference(shape)) return 0;
  const int64_t rows = ChoosingRows(shape) + shape.held_out_rows;
  return int64_t{sizeof(double)} * rows * shape.output_columns +
         int64_t{sizeof(double)} * rows * ScoreCount(shape) +
         2 * int64_t{sizeof(double)} * ChoosingRows(shape) * shape.columns;
}

absl::StatusOr<std::optional<DriftReference>> ReferenceOfBuild(const CertificationTask& task,
                                                               const BuiltMapping& mapping,
                                                               BuildProgress& progress) {
  if (mapping.held_out_features.rows() < kMinReferenceRows) return std::nullopt;
  const auto threads = [&] { return progress.threads(); };
  const auto checkpoint = [&](double) {
    return progress.Report(BuildStep::kMeasurement, "certificate", 1);
  };
  const TileControl control(threads, checkpoint);
  const int64_t spare = SparePoolRows(task, mapping);
  const bool has_spare = spare >= kLeastChoosingRows && task.kernel.PoolRowsAreKnown();
  const EngineRows rows =
      task.kernel.RowsForDrift(mapping, has_spare ? std::min(spare, kMaxChoosingRows) : 0);
  // Fewer if rows repeat landmarks.
  const bool from_pool = rows.pool.rows() >= kLeastChoosingRows;
  Parts parts{.choosing = rows.pool.view(),
              .choosing_features = {},
              .held_out = rows.held_out,
              .held_out_features = mapping.held_out_features.view()};
  if (!from_pool) parts = DividedHeldOut(parts);
  if (parts.held_out.rows() < kMinReferenceRows) return std::nullopt;
  Matrix<double> features;
  if (from_pool) {
    absl::StatusOr<Matrix<double>> made =
        FeaturesOf(mapping.served, parts.choosing, control, rows.strings);
    if (absl::IsOutOfRange(made.status())) return std::nullopt;
    PHIMAP_RETURN_IF_ERROR(made.status());
    features = *std::move(made);
    parts.choosing_features = std::as_const(features).view();
  }
  return MakeReference(task, mapping, rows, parts);
}

}  // namespace phimap
