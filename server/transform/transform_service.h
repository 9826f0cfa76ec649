// TransformService: see proto/phimap/v1/transform_service.proto.
#ifndef PHIMAP_SERVER_TRANSFORM_TRANSFORM_SERVICE_H_
#define PHIMAP_SERVER_TRANSFORM_TRANSFORM_SERVICE_H_

#include "absl/time/time.h"
#include "server/rpc/dispatcher.h"
#include "server/transform/row_call.h"

namespace phimap {

// Adds the service. `environment` and `idle_limit` must outlive the dispatcher. A TransformStream
// whose client is silent for `idle_limit` is ended.
void AddTransformService(const RowCallEnvironment& environment, const absl::Duration& idle_limit,
                         Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_TRANSFORM_SERVICE_H_
