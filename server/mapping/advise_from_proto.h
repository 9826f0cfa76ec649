// Advise: the advisor between its messages.
#ifndef PHIMAP_SERVER_MAPPING_ADVISE_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_ADVISE_FROM_PROTO_H_

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// Fills in `response`. Errors and cost as phimap::Advise: up to 0.2 s, not on an RPC thread.
absl::Status AdviseFromProto(const v1::AdviseRequest& request, v1::AdviseResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_ADVISE_FROM_PROTO_H_
