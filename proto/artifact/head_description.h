// Describes a head, and the report of its training, as messages.
#ifndef PHIMAP_PROTO_ARTIFACT_HEAD_DESCRIPTION_H_
#define PHIMAP_PROTO_ARTIFACT_HEAD_DESCRIPTION_H_

#include "core/head/head.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// A report of a newer release that is unreadable here is left out: the head answers all the same.
void HeadToProto(const HeadFacts& head, v1::Head* out);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ARTIFACT_HEAD_DESCRIPTION_H_
