// Converts a google.protobuf.Duration to a checked TTL of a version.
#ifndef PHIMAP_SERVER_MAPPING_TTL_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_TTL_FROM_PROTO_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace phimap {

// Returns the TTL, or INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) naming `field` if it is not between
// kLeastTtl and kLargestTtl (server/store/records.h). REQUIRES: `ttl` was set.
absl::StatusOr<absl::Duration> TtlFromProto(const google::protobuf::Duration& ttl,
                                            absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_TTL_FROM_PROTO_H_
