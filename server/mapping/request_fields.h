// Checks the fields that several requests have: the ids that callers choose for their builds and
// changes, the lifetime of a version, and the page of a list.
#ifndef PHIMAP_SERVER_MAPPING_REQUEST_FIELDS_H_
#define PHIMAP_SERVER_MAPPING_REQUEST_FIELDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "server/build/build_job.h"

namespace phimap {

// Checks the mapping's name and the UUID. Lower-cases the UUID, so that upper-case and lower-case
// spellings mean the same build. INVALID_ARGUMENT names "mapping" or "build_id", prefixed with
// `prefix`.
absl::StatusOr<BuildId> BuildIdFromProto(absl::string_view mapping, absl::string_view build_id,
                                         absl::string_view prefix);
// Returns the UUID in lower case, or "" if there is none. INVALID_ARGUMENT names "operation_id".
absl::StatusOr<std::string> OperationIdOf(absl::string_view operation_id);

// Returns the TTL, or INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) naming `field` if it is not between
// kLeastTtl and kLargestTtl (server/store/records.h). REQUIRES: `ttl` was set.
absl::StatusOr<absl::Duration> TtlFromProto(const google::protobuf::Duration& ttl,
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

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_REQUEST_FIELDS_H_
