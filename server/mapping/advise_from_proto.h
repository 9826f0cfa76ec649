// Advise: runs the advisor on a request and fills in the response.
#ifndef PHIMAP_SERVER_MAPPING_ADVISE_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_ADVISE_FROM_PROTO_H_

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// Fills in `response`. Returns the errors of phimap::Advise. Takes up to 0.2 s, so must not run on
// an RPC thread.
absl::Status AdviseFromProto(const v1::AdviseRequest& request, v1::AdviseResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_ADVISE_FROM_PROTO_H_
