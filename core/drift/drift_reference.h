// What served rows are compared with: the distribution of each score over the held-out rows of a
// version's build.
#ifndef PHIMAP_CORE_DRIFT_DRIFT_REFERENCE_H_
#define PHIMAP_CORE_DRIFT_DRIFT_REFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/drift/score_functions.h"
#include "core/plan/plan.h"

namespace phimap {

// Minimum number of held-out rows for a reference. A version with fewer has none, and its drift is
// not tested.
inline constexpr int64_t kMinReferenceRows = 100;
// Maximum number of held-out rows, whose counts are stored in 16 bits.
inline constexpr int64_t kMaxReferenceRows = 65535;
// Maximum number of bins of a score.
inline constexpr int64_t kMaxBins = 256;

// The distribution of one score over the held-out rows. Value v is in bin b if exactly b edges are
// at most v.
struct ScoreHistogram {
  // Rising, at most kMaxBins − 1.
  std::vector<double> edges;
  // Held-out rows in each bin, one more than there are edges.
  std::vector<uint16_t> counts;

  int64_t BinOf(double value) const;
};

// Holds no row of the stream. Edges lie between values of two rows, and the range of a column is
// rounded outwards to float32.
struct DriftReference {
  // Number of held-out rows in each histogram.
  int64_t rows = 0;
  ScoreFunctions scores;
  // One for each score.
  std::vector<ScoreHistogram> histograms;
  // Mean of F over the held-out rows, and the trace of its covariance, Σ‖F − mean‖²/(rows − 1).
  std::vector<double> mean;
  double scatter = 0;
  // The range of each column over all rows of the stream, of which there were stream_rows. Empty if
  // rows have no columns.
  int64_t stream_rows = 0;
  std::vector<float> low;
  std::vector<float> high;

  int64_t output_columns() const { return static_cast<int64_t>(mean.size()); }
  int64_t memory_bytes() const;
};

// Encodes a reference as a section of an artifact (docs/formats.md). Equal references give equal
// bytes.
std::string EncodeDriftReference(const DriftReference& reference);

// Decodes the section. The bytes are untrusted: every count is bounded before memory is allocated.
// DATA_LOSS for bytes that EncodeDriftReference cannot have written. UNIMPLEMENTED for a kind of
// score that this build does not know.
absl::StatusOr<DriftReference> DecodeDriftReference(absl::string_view bytes);

// Checks that the reference describes rows and features of this plan: DATA_LOSS if it does not.
// `has_residual` says whether the version serves ρ.
absl::Status CheckReferenceFits(const DriftReference& reference, const Plan& plan,
                                bool has_residual);

}  // namespace phimap

#endif  // PHIMAP_CORE_DRIFT_DRIFT_REFERENCE_H_
