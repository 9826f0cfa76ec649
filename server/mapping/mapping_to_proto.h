// Converts records, certificates, builds and what is known about the drift of aliases to messages.
#ifndef PHIMAP_SERVER_MAPPING_MAPPING_TO_PROTO_H_
#define PHIMAP_SERVER_MAPPING_MAPPING_TO_PROTO_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "phimap/v1/mapping.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_job.h"
#include "server/build/version_reader.h"
#include "server/drift/drift_watcher.h"
#include "server/store/store.h"

namespace phimap {

void TimeToProto(absl::Time time, google::protobuf::Timestamp* out);
// Fills in the fields that come from the record. Leaves the certificate, and other fields that come
// from the artifact, unset.
void RecordToProto(const VersionRecord& record, v1::Version* out);
void VersionToProto(const CertifiedVersion& version, v1::Version* out);
void AliasToProto(const AliasRecord& alias, v1::Alias* out);
void MappingToProto(const MappingRecord& record, v1::Mapping* out);
void AuditEntryToProto(const AuditEntry& entry, v1::AuditEntry* out);
void BuildToProto(const BuildSnapshot& snapshot, v1::BuildJob* out);

// Fills in what is known about the drift of an alias. `column_names` are those of the alias's
// version, or empty.
void DriftToProto(const AliasDrift& drift, const std::vector<std::string>& column_names,
                  v1::AliasDrift* out);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_MAPPING_TO_PROTO_H_
