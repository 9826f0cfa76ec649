// EstimateBuild: the estimator between its messages.
#ifndef PHIMAP_SERVER_MAPPING_ESTIMATE_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_ESTIMATE_FROM_PROTO_H_

#include <cstdint>

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_manager.h"
#include "server/mapping/build_estimator.h"

namespace phimap {

// Fills in `response`; `builds` has the limit of all builds together. Errors: those of
// BuildManager::CheckKernel and BuildSpecFromProto, INVALID_ARGUMENT for rows or columns out of
// range, FAILED_PRECONDITION (ROWS_TOO_FEW, DIMENSIONS_TOO_MANY) as the build itself. Cost as
// BuildEstimator: not on an RPC thread.
absl::Status EstimateFromProto(const v1::EstimateBuildRequest& request, BuildEstimator& estimator,
                               const BuildManager& builds, v1::EstimateBuildResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_ESTIMATE_FROM_PROTO_H_
