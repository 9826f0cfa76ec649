// Reference vectors of a version: rows, and the bits of their features.
#ifndef PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
#define PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// Returns `rows` with their features as `plan` serves them. A row whose features overflow, are 0,
// or are all below 1/1024 of the anchor's largest feature is not worth comparing: under a sharp
// kernel every row far from the landmarks gives 0 on any machine. Such a row is moved towards the
// same row of `anchors`, halving the distance each time, until its features are worth comparing. It
// is left out if that fails. `anchors` has the shape of `rows`, or is empty; then no row is moved.
//
// Returns nullopt on a vector unit without fused multiply-add, whose bits differ from those of
// other machines, and if no row is left. Cost: up to 24 rows through the engine for a row that is
// moved.
std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows,
                                       ConstMatrixView<double> anchors);

// Maximum number of reference vectors of a version.
inline constexpr int64_t kMaxSelfCheckRows = 4;

// Returns the number of reference vectors: at most 4, limited to 256 KiB in total, but at least 1.
int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns);

// Runs the rows of `check`, which may be hostile, through `engine`. Returns true if the features
// have the expected bits, and false on a vector unit without fused multiply-add, where bits cannot
// be compared. DATA_LOSS: SELF_CHECK_SHAPE_MISMATCH if the shape does not match the engine or a row
// is not finite; SELF_CHECK_FAILED if a feature differs (the message names the first).
absl::StatusOr<bool> VerifySelfCheck(const Engine& engine, const SelfCheck& check);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
