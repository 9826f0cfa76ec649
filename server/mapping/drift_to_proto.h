// Converts what is known about the drift of aliases to messages.
#ifndef PHIMAP_SERVER_MAPPING_DRIFT_TO_PROTO_H_
#define PHIMAP_SERVER_MAPPING_DRIFT_TO_PROTO_H_

#include <string>
#include <vector>

#include "phimap/v1/mapping_service.pb.h"
#include "server/drift/drift_watcher.h"

namespace phimap {

// `column_names` are those of the alias's version, or empty.
void DriftToProto(const AliasDrift& drift, const std::vector<std::string>& column_names,
                  v1::AliasDrift* out);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_DRIFT_TO_PROTO_H_
