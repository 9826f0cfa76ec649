#include "core/drift/score_functions.h"

#include <algorithm>
#include <cmath>

#include "core/plan/rows.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Rows whose residuals are computed at a time.
constexpr int64_t kTileRows = 64;

// Returns f·v. Eight sums run side by side, so that no addition waits for the one before.
double Product(const double* f, const double* v, int64_t count) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t j = 0;
  for (; j + kSums <= count; j += kSums) {
    for (int64_t s = 0; s < kSums; ++s) sums[s] += f[j + s] * v[j + s];
  }
  double total = 0;
  for (; j < count; ++j) total += f[j] * v[j];
  for (const double sum : sums) total += sum;
  return total;
}

// Sets the scores that are functions of the features. Each row is widened once.
void ScoreFeatures(const ScoreFunctions& scores, const RowsView& features, MatrixView<double> out) {
  const Matrix<double> directions = Converted<double, float>(scores.directions.view());
  std::vector<double> f(static_cast<size_t>(features.columns));
  for (int64_t i = 0; i < features.rows; ++i) {
    features.CopyRow(i, f.data());
    for (int64_t s = 0; s < scores.count(); ++s) {
      const ScoreFunction& function = scores.functions[static_cast<size_t>(s)];
      if (function.kind == ScoreKind::kSquaredNorm) {
        out(i, s) = SquaredNorm(f.data(), features.columns);
      } else if (function.kind == ScoreKind::kDirection) {
        out(i, s) = Product(f.data(), directions.row(function.index), features.columns);
      }
    }
  }
}

// Returns the features of some rows in float32.
Matrix<float> Narrowed(const RowsView& features) {
  Matrix<float> narrow = Matrix<float>::Uninit(features.rows, features.columns);
  std::vector<double> row(static_cast<size_t>(features.columns));
  for (int64_t i = 0; i < features.rows; ++i) {
    features.CopyRow(i, row.data());
    for (int64_t j = 0; j < features.columns; ++j) {
      narrow(i, j) = static_cast<float>(row[static_cast<size_t>(j)]);
    }
  }
  return narrow;
}

void ScoreResiduals(const ExamplesView& all_rows, const RowsView& all_features,
                    const Residual& residual, int64_t s, MatrixView<double> out) {
  for (int64_t begin = 0; begin < all_rows.rows(); begin += kTileRows) {
    const auto count = std::min(kTileRows, all_rows.rows() - begin);
    const ExamplesView rows = all_rows.Slice(begin, count);
    const RowsView features = all_features.Slice(begin, count);
    double rho[kTileRows], allowances[kTileRows], self[kTileRows], rounding[kTileRows];
    if (features.type == residual.serving_type()) {
      residual.Compute(rows, features.data, rho, allowances);
    } else {
      residual.Compute(rows, Narrowed(features).data(), rho, allowances);
    }
    residual.Lengths(rows, self, rounding);
    for (int64_t i = 0; i < count; ++i) {
      // An infinite allowance means that nothing is known of the residual.
      out(begin + i, s) = !std::isfinite(allowances[i]) ? allowances[i]
                          : self[i] == 0                ? 0
                                                        : rho[i] / self[i];
    }
  }
}

// Sets the scores that are columns of the rows.
void ScoreColumns(const ScoreFunctions& scores, const ExamplesView& rows, MatrixView<double> out) {
  std::vector<double> x(static_cast<size_t>(rows.columns()));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    rows.CopyRow(i, x.data());
    for (int64_t s = 0; s < scores.count(); ++s) {
      const ScoreFunction& function = scores.functions[static_cast<size_t>(s)];
      if (function.kind == ScoreKind::kColumn) out(i, s) = x[static_cast<size_t>(function.index)];
    }
  }
}

}  // namespace

void ComputeScores(const ScoreFunctions& scores, const ExamplesView& rows, const RowsView& features,
                   const Residual* residual, MatrixView<double> out) {
  PHIMAP_CHECK(out.rows() == rows.rows() && out.cols() == scores.count());
  bool has_columns = false;
  for (int64_t s = 0; s < scores.count(); ++s) {
    const ScoreKind kind = scores.functions[static_cast<size_t>(s)].kind;
    has_columns = has_columns || kind == ScoreKind::kColumn;
    if (kind != ScoreKind::kResidualShare) continue;
    PHIMAP_CHECK(residual != nullptr);
    ScoreResiduals(rows, features, *residual, s, out);
  }
  ScoreFeatures(scores, features, out);
  if (has_columns) ScoreColumns(scores, rows, out);
}

}  // namespace phimap
