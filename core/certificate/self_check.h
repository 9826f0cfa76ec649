// Golden vectors of a version: rows and the bits of their features.
#ifndef PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
#define PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/linalg/matrix.h"
#include "core/plan/engine.h"
#include "core/plan/plan.h"

namespace phimap {

// The features of `rows` as `plan` serves them. nullopt on a vector unit without fused
// multiply-add, whose bits are its own, and when a row's features overflow the serving type.
std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows);

// Most rows of a self-check.
inline constexpr int64_t kMaxSelfCheckRows = 4;

// How many rows a self-check takes: 4, or as many as keep it under 256 KiB, and at least 1.
int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns);

// Runs the rows of `check`, which may be hostile, through `engine`: true if the features have their
// bits, false on a vector unit without fused multiply-add, where they cannot be compared. DATA_LOSS
// (reasons SELF_CHECK_SHAPE, SELF_CHECK_FAILED) for another shape than the engine's, rows that are
// not finite, and features that differ; the first is named.
absl::StatusOr<bool> VerifySelfCheck(const Engine& engine, const SelfCheck& check);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
