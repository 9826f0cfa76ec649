// Converts the capabilities of the core for ListCapabilities.
#ifndef PHIMAP_SERVER_MAPPING_CAPABILITIES_TO_PROTO_H_
#define PHIMAP_SERVER_MAPPING_CAPABILITIES_TO_PROTO_H_

#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

void CapabilitiesToProto(v1::ListCapabilitiesResponse* out);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_CAPABILITIES_TO_PROTO_H_
