#include "core/drift/reference_making.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/drift/score_functions.h"
#include "core/linalg/blas.h"
#include "core/linalg/orthogonal_iteration.h"
#include "core/plan/rows.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// A direction is used if the features' variance along it is at least this share of the largest.
constexpr double kLeastVariance = 1e-9;

Matrix<double> Widened(const RowsView& rows, int64_t at_most) {
  Matrix<double> wide = Matrix<double>::Uninit(std::min(rows.rows, at_most), rows.columns);
  for (int64_t i = 0; i < wide.rows(); ++i) rows.CopyRow(i, wide.row(i));
  return wide;
}

std::vector<double> MeanOf(const Matrix<double>& rows) {
  std::vector<double> mean(static_cast<size_t>(rows.cols()));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < rows.cols(); ++j) mean[static_cast<size_t>(j)] += rows(i, j);
  }
  for (double& value : mean) value /= static_cast<double>(rows.rows());
  return mean;
}

void Subtract(const std::vector<double>& mean, Matrix<double>& rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < rows.cols(); ++j) rows(i, j) -= mean[static_cast<size_t>(j)];
  }
}

// Returns A·Aᵀ in full, for the centred features A.
Matrix<double> GramOf(const Matrix<double>& centred) {
  Matrix<double> gram(centred.rows(), centred.rows());
  SymmetricRankUpdate(1, centred.view(), 0, gram.view());
  for (int64_t i = 0; i < gram.rows(); ++i) {
    for (int64_t j = 0; j < i; ++j) gram(j, i) = gram(i, j);
  }
  return gram;
}

// Returns the first principal directions of the features, as unit vectors in float32. A small
// sample of rows is enough: any directions make valid scores, and those near the principal ones
// make strong ones.
absl::StatusOr<Matrix<float>> PrincipalDirections(const RowsView& features) {
  Matrix<double> centred = Widened(features, kMaxDirectionRows);
  Subtract(MeanOf(centred), centred);
  Matrix<double> gram = GramOf(centred);
  double trace = 0;
  for (int64_t i = 0; i < gram.rows(); ++i) trace += gram(i, i);
  if (!(trace > 0) || !std::isfinite(trace)) return Matrix<float>();
  const int64_t count = std::min(gram.rows(), kPrincipalDirections);
  PHIMAP_ASSIGN_OR_RETURN(const Eigenpairs pairs, FactorEigenpairs(std::move(gram), count));
  int64_t kept = 0;
  const auto found = static_cast<int64_t>(pairs.values.size());
  while (kept < found && pairs.values[static_cast<size_t>(kept)] > kLeastVariance * trace) ++kept;
  Matrix<double> directions(kept, centred.cols());
  if (kept == 0) return Matrix<float>();
  Multiply(1, pairs.vectors.view().Rows(0, kept), centred.view(), 0, directions.view());
  for (int64_t i = 0; i < kept; ++i) {
    const double length = std::sqrt(pairs.values[static_cast<size_t>(i)]);
    for (int64_t j = 0; j < directions.cols(); ++j) directions(i, j) /= length;
  }
  return Converted<float, double>(directions.view());
}

// Returns the columns that vary on the rows, by falling variance as a share of their squared range,
// so that the unit of a column does not decide whether it is tested.
std::vector<int32_t> ColumnsByVariance(const ExamplesView& rows) {
  Matrix<double> wide = Matrix<double>::Uninit(rows.rows(), rows.columns());
  for (int64_t i = 0; i < wide.rows(); ++i) rows.CopyRow(i, wide.row(i));
  Subtract(MeanOf(wide), wide);
  std::vector<std::pair<double, int32_t>> variances;
  for (int64_t j = 0; j < wide.cols(); ++j) {
    double low = wide(0, j), high = wide(0, j);
    for (int64_t i = 0; i < wide.rows(); ++i) {
      low = std::min(low, wide(i, j));
      high = std::max(high, wide(i, j));
    }
    if (!(high > low)) continue;
    double sum = 0;
    for (int64_t i = 0; i < wide.rows(); ++i) {
      const double share = wide(i, j) / (high - low);
      sum += share * share;
    }
    variances.emplace_back(-sum, static_cast<int32_t>(j));
  }
  std::sort(variances.begin(), variances.end());
  std::vector<int32_t> columns;
  for (const auto& [sum, column] : variances) columns.push_back(column);
  return columns;
}

// Returns all scores that the rows allow.
absl::StatusOr<ScoreFunctions> ChooseScores(const ReferenceTask& task) {
  ScoreFunctions scores;
  if (task.residual != nullptr) scores.functions.push_back({ScoreKind::kResidualShare, 0});
  scores.functions.push_back({ScoreKind::kSquaredNorm, 0});
  PHIMAP_ASSIGN_OR_RETURN(scores.directions, PrincipalDirections(task.choosing.features));
  for (int64_t i = 0; i < scores.directions.rows(); ++i) {
    scores.functions.push_back({ScoreKind::kDirection, static_cast<int32_t>(i)});
  }
  if (!task.has_columns) return scores;
  for (const int32_t column : ColumnsByVariance(task.choosing.rows)) {
    if (scores.count() == kMaxScores) break;
    scores.functions.push_back({ScoreKind::kColumn, column});
  }
  return scores;
}

Matrix<double> ScoresOf(const ScoreFunctions& scores, const MappedRows& mapped,
                        const Residual* residual) {
  Matrix<double> values = Matrix<double>::Uninit(mapped.rows.rows(), scores.count());
  ComputeScores(scores, mapped.rows, mapped.features, residual, values.view());
  return values;
}

std::vector<double> ColumnOf(const Matrix<double>& values, int64_t column) {
  std::vector<double> out(static_cast<size_t>(values.rows()));
  for (int64_t i = 0; i < values.rows(); ++i) out[static_cast<size_t>(i)] = values(i, column);
  return out;
}

bool AllAreFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// Puts the scores with their histograms into the reference.
void AddHistograms(const ReferenceTask& task, ScoreFunctions scores, DriftReference& reference) {
  const Matrix<double> chosen = ScoresOf(scores, task.choosing, task.residual);
  const Matrix<double> held_out = ScoresOf(scores, task.held_out, task.residual);
  for (int64_t s = 0; s < scores.count(); ++s) {
    const std::vector<double> values = ColumnOf(chosen, s);
    const std::vector<double> reference_values = ColumnOf(held_out, s);
    if (!AllAreFinite(values) || !AllAreFinite(reference_values)) continue;
    std::vector<double> edges = EdgesOf(values);
    const ScoreFunction function = scores.functions[static_cast<size_t>(s)];
    if (edges.empty() && function.kind != ScoreKind::kSquaredNorm) continue;
    reference.scores.functions.push_back(function);
    reference.histograms.push_back(HistogramOf(std::move(edges), reference_values));
  }
  reference.scores.directions = std::move(scores.directions);
}

// Sets the mean of the features and their scatter, in one pass: sums of the differences from the
// first row keep the digits that sums of the features themselves would lose.
void AddMoments(const RowsView& features, DriftReference& reference) {
  const auto columns = static_cast<size_t>(features.columns);
  std::vector<double> first(columns), row(columns), sums(columns);
  features.CopyRow(0, first.data());
  double squares = 0;
  for (int64_t i = 1; i < features.rows; ++i) {
    features.CopyRow(i, row.data());
    for (size_t j = 0; j < columns; ++j) {
      row[j] -= first[j];
      sums[j] += row[j];
    }
    squares += SquaredNorm(row.data(), features.columns);
  }
  const auto count = static_cast<double>(features.rows);
  reference.scatter =
      std::max(0.0, squares - SquaredNorm(sums.data(), features.columns) / count) / (count - 1);
  for (size_t j = 0; j < columns; ++j) sums[j] = first[j] + sums[j] / count;
  reference.mean = std::move(sums);
}

}  // namespace

std::vector<double> EdgesOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<int64_t>(values.size());
  std::vector<double> edges;
  for (int64_t k = 1; k < kMaxBins; ++k) {
    const int64_t at = k * count / kMaxBins;
    // Equal values share a bin, so the cut is put before the first of them.
    const auto above =
        std::lower_bound(values.begin(), values.end(), values[static_cast<size_t>(at)]);
    if (above == values.begin()) continue;
    const double edge = *(above - 1) / 2 + *above / 2;
    // Neighbours may be so close that their midpoint is one of them.
    if (edge > *(above - 1) && (edges.empty() || edge > edges.back())) edges.push_back(edge);
  }
  return edges;
}

ScoreHistogram HistogramOf(std::vector<double> edges, const std::vector<double>& values) {
  PHIMAP_CHECK(static_cast<int64_t>(values.size()) <= kMaxReferenceRows);
  ScoreHistogram histogram;
  histogram.edges = std::move(edges);
  histogram.counts.assign(histogram.edges.size() + 1, 0);
  for (const double value : values) ++histogram.counts[static_cast<size_t>(histogram.BinOf(value))];
  return histogram;
}

float RoundedDown(double number) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (number <= -kMost) return -kMost;
  if (number >= kMost) return kMost;
  const auto near = static_cast<float>(number);
  return static_cast<double>(near) <= number ? near : std::nextafter(near, -kMost);
}

float RoundedUp(double number) { return -RoundedDown(-number); }

absl::StatusOr<DriftReference> MakeDriftReference(const ReferenceTask& task) {
  const int64_t rows = task.held_out.rows.rows();
  PHIMAP_CHECK(rows >= kMinReferenceRows && rows <= kMaxReferenceRows);
  DriftReference reference;
  reference.rows = rows;
  reference.stream_rows = rows;
  PHIMAP_ASSIGN_OR_RETURN(ScoreFunctions scores, ChooseScores(task));
  AddHistograms(task, std::move(scores), reference);
  AddMoments(task.held_out.features, reference);
  return reference;
}

}  // namespace phimap
