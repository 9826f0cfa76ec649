// Makes the drift reference of a version from rows of its build.
#ifndef PHIMAP_CORE_DRIFT_REFERENCE_MAKING_H_
#define PHIMAP_CORE_DRIFT_REFERENCE_MAKING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/drift/drift_reference.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"

namespace phimap {

// Maximum number of rows that scores and edges are chosen from, and number of these from which
// directions are computed.
inline constexpr int64_t kMaxChoosingRows = 256;
inline constexpr int64_t kMaxDirectionRows = 128;
// Number of principal directions of F among the scores.
inline constexpr int64_t kPrincipalDirections = 8;

// Rows, with their features from the plan's engine, widened to float64 or not.
struct MappedRows {
  ExamplesView rows;
  RowsView features;
};

struct ReferenceTask {
  // Rows that the scores, directions and edges are chosen from. They must not be among the held-out
  // rows, because the test rests on scores that were chosen without these.
  MappedRows choosing;
  // Rows whose scores make the histograms; at least kMinReferenceRows.
  MappedRows held_out;
  // Null if the version serves no ρ.
  const Residual* residual = nullptr;
  // Whether a column of the rows is a column of the stream. Not so for strings and for values of a
  // remote kernel.
  bool has_columns = false;
};

// Makes a reference without ranges. Its scores are, in this order: ρ/K if there is a residual,
// ‖F‖², the first principal directions of F, and as many columns as fit, by falling variance.
// Scores that are constant or not finite on the choosing rows are left out, except ‖F‖².
//
// Cost: for m = min(kMaxDirectionRows, choosing rows) and d features, m²·d multiplications and 9m³
//       flops for the directions, and ComputeScores of all rows. Deterministic. Calls BLAS and
//       LAPACK.
// Errors: INTERNAL if LAPACK does not converge.
absl::StatusOr<DriftReference> MakeDriftReference(const ReferenceTask& task);

// Returns at most kMaxBins − 1 edges that cut `values` into bins of about equal counts. An edge is
// the midpoint between two neighbours that differ, so no edge is a value itself unless float64 has
// no number between the two.
std::vector<double> EdgesOf(std::vector<double> values);

// Returns the histogram of the values of a score. REQUIRES: at most kMaxReferenceRows values.
ScoreHistogram HistogramOf(std::vector<double> edges, const std::vector<double>& values);

// Returns a range's end as it is stored: rounded down or up to float32, and finite.
float RoundedDown(double number);
float RoundedUp(double number);

}  // namespace phimap

#endif  // PHIMAP_CORE_DRIFT_REFERENCE_MAKING_H_
