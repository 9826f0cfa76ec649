// Checks and messages of Transform and TransformStream: what rows and features look like in them.
#ifndef PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_
#define PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/rows.h"
#include "phimap/v1/examples.pb.h"
#include "server/registry/version_handle.h"

namespace phimap {

// Where dense rows are in the requests.
inline constexpr char kRowsField[] = "examples.dense.";

// FAILED_PRECONDITION (reason DIGEST_MISMATCH, field "expected_digest") unless `expected` is empty
// or the version's.
absl::Status CheckDigest(const VersionHandle& version, absl::string_view expected);

// The columns that the version's rows have, for people: "16", or "40, or 41 with K(x, x) as the
// last" of a version that takes kernel values.
std::string ColumnsText(const VersionHandle& version);

// INVALID_ARGUMENT (reason WRONG_COLUMNS) unless the rows have as many columns as the version maps.
absl::Status CheckColumns(const VersionHandle& version, const RowsView& rows);

// The version's residual. FAILED_PRECONDITION (reason NO_RESIDUAL, with `field`) if it has none;
// INVALID_ARGUMENT (reason NO_SELF_VALUES) if the rows lack K(x, x), which it cannot compute.
absl::StatusOr<const Residual*> ResidualOf(const VersionHandle& version, const RowsView& rows,
                                           absl::string_view field);

// What a request for residuals adds to the answer's bytes of a row.
inline constexpr int64_t kResidualBytes = sizeof(double);

// The residuals of `rows`, whose features are in `features`.
void AddResiduals(const Residual& residual, const RowsView& rows, const v1::DenseRows& features,
                  google::protobuf::RepeatedField<double>* residuals);

// Room for the features of `rows` rows, in the field of the serving type.
char* AllocateFeatures(const Engine& engine, int64_t rows, v1::DenseRows* features);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_
