// Server reflection, v1 and v1alpha: see proto/grpc/reflection.
#ifndef PHIMAP_SERVER_REFLECTION_REFLECTION_SERVICE_H_
#define PHIMAP_SERVER_REFLECTION_REFLECTION_SERVICE_H_

#include "server/calls/dispatcher.h"

namespace phimap {

// Adds v1 and v1alpha. They describe themselves and the services that `dispatcher` has so far, so
// this must be called after all other services were added.
void AddReflectionService(Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_REFLECTION_REFLECTION_SERVICE_H_
