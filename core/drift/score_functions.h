// Scores: fixed functions of a row x, whose distribution shows whether rows have changed.
//
// The functions are chosen when a version is built, from rows of its pool, and never change. The
// test for drift (sequential_test.h) compares the distribution of each score over served rows with
// its distribution over held-out rows.
#ifndef PHIMAP_CORE_DRIFT_SCORE_FUNCTIONS_H_
#define PHIMAP_CORE_DRIFT_SCORE_FUNCTIONS_H_

#include <cstdint>
#include <vector>

#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"

namespace phimap {

// Maximum number of scores of a version.
inline constexpr int64_t kMaxScores = 128;

// The numbers are part of the artifact format and are never reused.
enum class ScoreKind : uint8_t {
  kResidualShare = 1,  // ρ(x)/K(x, x), the share of φ(x) outside of the landmarks' span
  kSquaredNorm = 2,    // ‖F(x)‖²
  kDirection = 3,      // F(x)·v for one of the directions v
  kColumn = 4          // one column of x
};

struct ScoreFunction {
  ScoreKind kind = ScoreKind::kSquaredNorm;
  // Index of the direction or of the column; 0 for other kinds.
  int32_t index = 0;

  friend bool operator==(const ScoreFunction&, const ScoreFunction&) = default;
};

struct ScoreFunctions {
  std::vector<ScoreFunction> functions;
  // Directions v in the space of features: count × features.
  Matrix<float> directions;

  int64_t count() const { return static_cast<int64_t>(functions.size()); }
};

// Sets out(i, s) to score s of row i, in float64. `features` are the features of the rows from the
// plan's engine, in the serving type and aligned for it, or widened to float64. A score may be
// infinite or NaN.
//
// The bits of a score depend on the row alone, so a row gets the same score in a build and when it
// is served.
//
// Cost: for each row, features × directions multiplications, and Residual::Compute twice if ρ is
//       among the scores. Calls no BLAS. Thread-safe.
// REQUIRES: `residual` is not null if a function is kResidualShare. Rows have numbers if a function
//           is kColumn, and every index is in range.
void ComputeScores(const ScoreFunctions& scores, const ExamplesView& rows, const RowsView& features,
                   const Residual* residual, MatrixView<double> out);

}  // namespace phimap

#endif  // PHIMAP_CORE_DRIFT_SCORE_FUNCTIONS_H_
