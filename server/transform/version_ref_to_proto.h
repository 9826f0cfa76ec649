// Converts a version's record to a VersionRef. Separate from version_to_proto.h because serving
// does not depend on certificates.
#ifndef PHIMAP_SERVER_TRANSFORM_VERSION_REF_TO_PROTO_H_
#define PHIMAP_SERVER_TRANSFORM_VERSION_REF_TO_PROTO_H_

#include "phimap/v1/mapping.pb.h"
#include "server/store/store.h"

namespace phimap {

inline void RefToProto(const VersionRecord& record, v1::VersionRef* out) {
  out->set_mapping(record.mapping);
  out->set_number(record.number);
  out->set_digest(record.digest);
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_VERSION_REF_TO_PROTO_H_
