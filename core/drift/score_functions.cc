#include "core/drift/score_functions.h"

#include <algorithm>

#include "core/plan/squared_norm.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Returns f·v in float64. Eight sums run side by side, so that no addition waits for the one
// before.
template <typename T>
double Product(const T* f, const float* v, int64_t count) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t j = 0;
  for (; j + kSums <= count; j += kSums) {
    for (int64_t s = 0; s < kSums; ++s) {
      sums[s] += static_cast<double>(f[j + s]) * static_cast<double>(v[j + s]);
    }
  }
  double total = 0;
  for (; j < count; ++j) total += static_cast<double>(f[j]) * static_cast<double>(v[j]);
  for (const double sum : sums) total += sum;
  return total;
}

// Sets out(i, s) for one score function s of features.
template <typename T>
void ScoreFeatures(const ScoreFunctions& scores, const RowsView& features, int64_t s,
                   MatrixView<double> out) {
  const ScoreFunction& function = scores.functions[static_cast<size_t>(s)];
  for (int64_t i = 0; i < features.rows; ++i) {
    const T* const f = reinterpret_cast<const T*>(features.Row(i));
    out(i, s) = function.kind == ScoreKind::kSquaredNorm
                    ? SquaredNorm(f, features.columns)
                    : Product(f, scores.directions.row(function.index), features.columns);
  }
}

void ScoreResidual(const ExamplesView& rows, const RowsView& features, const Residual& residual,
                   int64_t s, MatrixView<double> out) {
  const auto count = static_cast<size_t>(rows.rows());
  std::vector<double> rho(count), self(count), rounding(count);
  residual.Compute(rows, features.data, rho.data());
  residual.Lengths(rows, self.data(), rounding.data());
  for (size_t i = 0; i < count; ++i) {
    out(static_cast<int64_t>(i), s) = self[i] == 0 && rho[i] == 0 ? 0 : rho[i] / self[i];
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
  bool columns = false;
  for (int64_t s = 0; s < scores.count(); ++s) {
    switch (scores.functions[static_cast<size_t>(s)].kind) {
      case ScoreKind::kResidualShare:
        PHIMAP_CHECK(residual != nullptr);
        ScoreResidual(rows, features, *residual, s, out);
        break;
      case ScoreKind::kColumn:
        columns = true;
        break;
      case ScoreKind::kSquaredNorm:
      case ScoreKind::kDirection:
        features.type == FloatType::kFloat32 ? ScoreFeatures<float>(scores, features, s, out)
                                             : ScoreFeatures<double>(scores, features, s, out);
    }
  }
  if (columns) ScoreColumns(scores, rows, out);
}

}  // namespace phimap
