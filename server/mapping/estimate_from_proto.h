// EstimateBuild: runs the estimator on a request and fills in the response.
#ifndef PHIMAP_SERVER_MAPPING_ESTIMATE_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_ESTIMATE_FROM_PROTO_H_

#include <cstdint>

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_manager.h"
#include "server/mapping/build_estimator.h"

namespace phimap {

// Fills in `response`; `builds` supplies the memory limit of all builds together. Returns the
// errors of BuildManager::CheckKernel and BuildSpecFromProto, INVALID_ARGUMENT for rows or columns
// out of range, and FAILED_PRECONDITION (ROWS_TOO_FEW, DIMENSIONS_TOO_MANY) as the build itself
// would. Takes as long as BuildEstimator, so must not run on an RPC thread.
absl::Status EstimateFromProto(const v1::EstimateBuildRequest& request, BuildEstimator& estimator,
                               const BuildManager& builds, v1::EstimateBuildResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_ESTIMATE_FROM_PROTO_H_
