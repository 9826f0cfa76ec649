// Reads the fields of requests: the ids that callers choose for their builds and changes, the
// lifetime of a version, the page of a list, and what to build.
#ifndef PHIMAP_SERVER_MAPPING_REQUEST_FIELDS_H_
#define PHIMAP_SERVER_MAPPING_REQUEST_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/mapping/spec/build_spec.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_job.h"
#include "server/registry/reference.h"

namespace phimap {

// Checks the mapping's name and the UUID. Lower-cases the UUID, so that upper-case and lower-case
// spellings mean the same build. INVALID_ARGUMENT names "name" or "build_id", prefixed with
// `prefix`.
absl::StatusOr<BuildId> BuildIdFromProto(absl::string_view name, absl::string_view build_id,
                                         absl::string_view prefix);
// Returns INVALID_ARGUMENT (FIELD_REMOVED, with `field`) if the message has fields that only
// earlier releases had. The message names these fields and says `instead`.
absl::Status CheckNoneRemoved(const google::protobuf::Message& message, absl::string_view field,
                              absl::string_view instead);
// Parses the field `reference` of a request that changes a version. Only a number or a digest may
// name the version: by the time that the request arrives, a name or an alias can mean another one.
// INVALID_ARGUMENT names "reference". The result points into `reference`, which is the field's
// value.
absl::StatusOr<Reference> FixedReference(const google::protobuf::Message& request,
                                         absl::string_view reference);
// Returns the UUID in lower case, or "" if there is none. INVALID_ARGUMENT names "operation_id".
absl::StatusOr<std::string> OperationIdOf(absl::string_view operation_id);

// Returns the TTL, or INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) naming `field` if it is not between
// kLeastTtl and kLargestTtl (server/store/records.h). REQUIRES: `ttl` was set.
absl::StatusOr<absl::Duration> TtlFromProto(const google::protobuf::Duration& ttl,
                                            absl::string_view field);

// Returns the time. INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) naming `field` if it is not between the
// years 1 and 9999, as protobuf has it.
absl::StatusOr<absl::Time> TimeFromProto(const google::protobuf::Timestamp& time,
                                         absl::string_view field);

// Tokens continue a list. They are opaque to clients. A token that this server did not issue for
// the same list is rejected.

// Returns a token for `position` in `list` ("mappings", "versions/letter").
std::string EncodePageToken(absl::string_view list, absl::string_view position);
// Returns the position. Returns INVALID_ARGUMENT (reason PAGE_TOKEN_INVALID, field "page_token") if
// `token` is malformed or belongs to another list.
absl::StatusOr<std::string> DecodePageToken(absl::string_view list, absl::string_view token);

// Returns the page size to use: the default for 0, and at most the maximum. INVALID_ARGUMENT (field
// "page_size") if negative.
absl::StatusOr<int> PageSize(int requested);

// Converts the first message of a Build call, of this API or of a client of 0.1. Returns a spec
// that passes Validate(), or INVALID_ARGUMENT. Errors give the path of their field, beginning at
// the root of the request: "spec.landmarks" or "spec.gamma" for a parameter of a text, "spec.spec"
// or "spec.kernel" for the syntax of the text.
absl::StatusOr<BuildSpec> BuildSpecFromProto(const v1::BuildSpec& spec,
                                             absl::string_view prefix = "spec.");

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_REQUEST_FIELDS_H_
