// What the core can build and learn, as messages.
#ifndef PHIMAP_PROTO_CALLS_CAPABILITIES_H_
#define PHIMAP_PROTO_CALLS_CAPABILITIES_H_

#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// Fills in the answer of ListCapabilities.
void CapabilitiesToProto(v1::ListCapabilitiesResponse* out);

}  // namespace phimap

#endif  // PHIMAP_PROTO_CALLS_CAPABILITIES_H_
