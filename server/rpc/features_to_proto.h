// Checks and messages of Transform and TransformStream: what rows and features look like in them.
#ifndef PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_
#define PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/examples.h"
#include "phimap/v1/examples.pb.h"
#include "server/registry/version_handle.h"

namespace phimap {

// Where examples of a kind are in the requests: "examples.dense.".
absl::string_view RowsField(ExampleKind kind);

// FAILED_PRECONDITION (reason DIGEST_MISMATCH, field "expected_digest") unless `expected` is empty
// or the version's.
absl::Status CheckDigest(const VersionHandle& version, absl::string_view expected);

// The version's residual. FAILED_PRECONDITION (reason NO_RESIDUAL, with `field`) if it has none;
// INVALID_ARGUMENT (reason NO_SELF_VALUES) if the rows lack K(x, x), which it cannot compute.
absl::StatusOr<const Residual*> ResidualOf(const VersionHandle& version, const ExamplesView& rows,
                                           absl::string_view field);

// What a request for residuals adds to the answer's bytes of a row.
inline constexpr int64_t kResidualBytes = sizeof(double);

// The residuals of `rows`, whose features are in `features`.
void AddResiduals(const Residual& residual, const ExamplesView& rows, const v1::DenseRows& features,
                  google::protobuf::RepeatedField<double>* residuals);

// Room for the features of `rows` rows, in the field of the serving type.
char* AllocateFeatures(const Engine& engine, int64_t rows, v1::DenseRows* features);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_
