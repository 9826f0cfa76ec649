// Tokens that continue a list. They are opaque to clients. A token that this server did not issue
// for the same list is rejected.
#ifndef PHIMAP_SERVER_MAPPING_PAGE_TOKEN_H_
#define PHIMAP_SERVER_MAPPING_PAGE_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Returns a token for `position` in `list` ("mappings", "versions/letter").
std::string EncodePageToken(absl::string_view list, absl::string_view position);
// Returns the position. Returns INVALID_ARGUMENT (reason PAGE_TOKEN_INVALID, field "page_token") if
// `token` is malformed or belongs to another list.
absl::StatusOr<std::string> DecodePageToken(absl::string_view list, absl::string_view token);

// Returns the page size to use: the default for 0, and at most the maximum. INVALID_ARGUMENT (field
// "page_size") if negative.
absl::StatusOr<int> PageSize(int requested);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_PAGE_TOKEN_H_
