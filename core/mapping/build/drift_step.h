// Makes the drift reference of a mapping that was just built and certified.
#ifndef PHIMAP_CORE_MAPPING_BUILD_DRIFT_STEP_H_
#define PHIMAP_CORE_MAPPING_BUILD_DRIFT_STEP_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/drift/drift_reference.h"
#include "core/linalg/work.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/build/certification.h"
#include "core/mapping/builder_parts/built_mapping.h"

namespace phimap {

// Makes the reference. Scores and edges are chosen from pool rows that were not drawn as landmarks
// or, if there are fewer than kLeastChoosingRows of these, from a quarter of the held-out rows,
// which then do not count. Returns nullopt if fewer than kMinReferenceRows held-out rows are left,
// or if features of pool rows overflow: then drift is not tested. Errors: those of
// MakeDriftReference.
//
// REQUIRES: Certify has set mapping.held_out_features.
absl::StatusOr<std::optional<DriftReference>> ReferenceOfBuild(const CertificationTask& task,
                                                               const BuiltMapping& mapping,
                                                               BuildProgress& progress);

// Minimum number of pool rows from which scores are chosen.
inline constexpr int64_t kLeastChoosingRows = 128;

// Shape of a build, for forecasts of its reference.
struct ReferenceShape {
  int64_t held_out_rows = 0;
  // Pool rows that are not landmarks.
  int64_t pool_rows = 0;
  // Columns of an example; 0 if they are not scored.
  int64_t columns = 0;
  int64_t output_columns = 0;
  bool has_residual = false;
};
// Return the size in bytes of the reference's section if all scores have as many bins as possible,
// and the work of making it. `row` is the work of the plan for a row.
int64_t ReferenceBytes(const ReferenceShape& shape);
Work ReferenceWork(const ReferenceShape& shape, const Work& row);
// Returns the memory that making it takes in bytes, with the features of the held-out rows.
int64_t ReferenceMemoryBytes(const ReferenceShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_DRIFT_STEP_H_
