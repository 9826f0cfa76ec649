// Converts records, certificates and builds to messages.
#ifndef PHIMAP_SERVER_MAPPING_VERSION_TO_PROTO_H_
#define PHIMAP_SERVER_MAPPING_VERSION_TO_PROTO_H_

#include "phimap/v1/mapping.pb.h"
#include "server/build/build_job.h"
#include "server/store/store.h"
#include "server/versions/version_reader.h"

namespace phimap {

// Fills in everything that a record holds: not the certificate, and not what only the artifact
// says.
void RecordToProto(const VersionRecord& record, v1::Version* out);
void VersionToProto(const CertifiedVersion& version, v1::Version* out);
void AliasToProto(const AliasRecord& alias, v1::Alias* out);
void MappingToProto(const MappingRecord& record, v1::Mapping* out);
void BuildToProto(const BuildSnapshot& snapshot, v1::BuildJob* out);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_VERSION_TO_PROTO_H_
