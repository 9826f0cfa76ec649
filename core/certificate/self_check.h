// Reference vectors of a version: rows, and their features bit for bit.
#ifndef PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
#define PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// Returns reference vectors: `rows`, with their features as `plan` serves them. A row is useful as
// a reference if its features do not overflow and the largest of them is not 0. The largest must
// also be at least 1/1024 of the largest feature of the row's anchor. A sharp kernel, for example,
// gives 0 on every machine for every row far from the landmarks.
//
// The anchor of a row is the row with the same index in `anchors`, which has the shape of `rows`. A
// row that is not useful is moved towards its anchor. Each move halves the distance, until the row
// is useful. If it never becomes useful, it is left out. `anchors` may be empty; then no row is
// moved.
//
// Returns nullopt if no row is left. Also returns nullopt on a vector unit without fused
// multiply-add, because its results differ from those of other machines in the last bits. Cost: up
// to 24 rows through the engine for each row that is moved.
std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows,
                                       ConstMatrixView<double> anchors);

// Maximum number of reference vectors of a version.
inline constexpr int64_t kMaxSelfCheckRows = 4;

// Returns the number of reference vectors: at most 4, limited to 256 KiB in total, but at least 1.
int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns);

// Runs the rows of `check`, which may be hostile, through `engine`. Returns true if the features
// agree bit for bit. Returns false on a vector unit without fused multiply-add, where features
// cannot be compared bit for bit. DATA_LOSS: SELF_CHECK_SHAPE_MISMATCH if the shape does not match
// the engine or a row is not finite; SELF_CHECK_FAILED if a feature differs (the message gives the
// first).
absl::StatusOr<bool> VerifySelfCheck(const Engine& engine, const SelfCheck& check);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
