// grpc.health.v1.Health: see proto/grpc/health/v1/health.proto.
#ifndef PHIMAP_SERVER_HEALTH_HEALTH_SERVICE_H_
#define PHIMAP_SERVER_HEALTH_HEALTH_SERVICE_H_

#include "server/calls/dispatcher.h"
#include "server/health/health_status.h"

namespace phimap {

// Adds the service, which any caller may use at any time. `status` must outlive all calls.
void AddHealthService(HealthStatus& status, Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HEALTH_HEALTH_SERVICE_H_
