// Reference vectors of a version: rows and the bits of their features.
#ifndef PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
#define PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// The features of `rows` as `plan` serves them. A row without features to compare, because they
// overflow the serving type or are 0, is moved towards the row of `anchors` beside it, by halves of
// the way, until it has some: under a sharp kernel every row far from the landmarks gives 0, on any
// machine. Rows without such features are left out. `anchors` has the shape of `rows`, or is empty:
// no row is moved.
//
// nullopt on a vector unit without fused multiply-add, whose bits are its own, and when no row is
// left. Cost: for a row that is moved, up to 24 rows through the engine.
std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows,
                                       ConstMatrixView<double> anchors);

// Most rows of a self-check.
inline constexpr int64_t kMaxSelfCheckRows = 4;

// Number of rows of a self-check: 4, or as many as keep it under 256 KiB, and at least 1.
int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns);

// Runs the rows of `check`, which may be hostile, through `engine`: true if the features have their
// bits, false on a vector unit without fused multiply-add, where they cannot be compared. DATA_LOSS
// (reasons SELF_CHECK_SHAPE_MISMATCH, SELF_CHECK_FAILED) for another shape than the engine's, rows
// that are not finite, and features that differ; the first is named.
absl::StatusOr<bool> VerifySelfCheck(const Engine& engine, const SelfCheck& check);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
