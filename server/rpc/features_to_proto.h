// From a checked request to work for the scheduler: what Transform and TransformStream share.
#ifndef PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_
#define PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/rows.h"
#include "phimap/v1/examples.pb.h"
#include "server/registry/version_handle.h"
#include "server/rpc/limits.h"
#include "server/rpc/rpc_scope.h"
#include "server/schedule/transform_work.h"

namespace phimap {

// FAILED_PRECONDITION (reason DIGEST_MISMATCH, field "expected_digest") unless `expected` is empty
// or the version's.
absl::Status CheckDigest(const VersionHandle& version, absl::string_view expected);

// The rows suit the version and the answer fits into a message. INVALID_ARGUMENT (reason
// WRONG_COLUMNS), RESOURCE_EXHAUSTED (reason MESSAGE_TOO_LARGE, with the rows that would fit).
absl::Status CheckShape(const VersionHandle& version, const RowsView& rows,
                        const RpcLimits& limits);

// Bytes of the features of `rows` rows.
int64_t FeatureBytes(const VersionHandle& version, int64_t rows);

// Work whose features go straight into `features`, in the serving type: the one copy out. The
// values of the rows are checked on the worker. REQUIRES: CheckShape is OK; rows, features and
// scope live until `done`.
TransformWork MakeWork(const VersionHandle& version, const RowsView& rows, v1::DenseRows* features,
                       const RpcScope& scope, std::function<void(const absl::Status&)> done);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_FEATURES_TO_PROTO_H_
