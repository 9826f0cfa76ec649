// Server reflection, v1 and v1alpha: see proto/grpc/reflection.
#ifndef PHIMAP_SERVER_REFLECTION_REFLECTION_SERVICE_H_
#define PHIMAP_SERVER_REFLECTION_REFLECTION_SERVICE_H_

#include "server/calls/dispatcher.h"

namespace phimap {

// Adds both versions, which tell of themselves and of the services that `dispatcher` has by now: to
// be called after all others are added.
void AddReflectionService(Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_REFLECTION_REFLECTION_SERVICE_H_
