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

// Computes the features of `rows` as `plan` serves them. If the features of a row overflow the
// serving type or are 0, the row is moved towards the row of `anchors` with the same index, by half
// of the distance at a time: under a narrow kernel every row far from the landmarks gives 0. Rows
// that still have no features are left out. `anchors` has the shape of `rows`, or is empty, and
// then no row is moved.
//
// nullopt on a vector unit without fused multiply-add, whose bits differ, and if no row is left.
// Cost: up to 24 rows through the engine for a row that is moved.
std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows,
                                       ConstMatrixView<double> anchors);

// Most rows of a self-check.
inline constexpr int64_t kMaxSelfCheckRows = 4;

// Number of rows of a self-check: 4, or as many as keep it under 256 KiB, and at least 1.
int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns);

// Runs the rows of `check`, which may be hostile, through `engine`. True if the features have the
// same bits; false on a vector unit without fused multiply-add, where they cannot be compared.
// DATA_LOSS (reasons SELF_CHECK_SHAPE_MISMATCH, SELF_CHECK_FAILED) for another shape than the
// engine's, rows that are not finite, and features that differ; the first is named.
absl::StatusOr<bool> VerifySelfCheck(const Engine& engine, const SelfCheck& check);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
