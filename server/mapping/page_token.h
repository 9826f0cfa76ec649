// Tokens that continue a list. Opaque to clients; one that this server did not hand out for this
// list is refused.
#ifndef PHIMAP_SERVER_MAPPING_PAGE_TOKEN_H_
#define PHIMAP_SERVER_MAPPING_PAGE_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// A token for `position` in `list` ("mappings", "versions/letter").
std::string EncodePageToken(absl::string_view list, absl::string_view position);
// The position. INVALID_ARGUMENT (reason PAGE_TOKEN_INVALID, field "page_token") for a token of
// another list or none.
absl::StatusOr<std::string> DecodePageToken(absl::string_view list, absl::string_view token);

// 0 means the default. INVALID_ARGUMENT (field "page_size") when negative; more than the maximum is
// the maximum.
absl::StatusOr<int> PageSize(int requested);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_PAGE_TOKEN_H_
