// Metadata whose names end in "-bin": bytes as base64 (RFC 4648, '+' and '/').
#ifndef PHIMAP_SERVER_CALLS_BINARY_METADATA_H_
#define PHIMAP_SERVER_CALLS_BINARY_METADATA_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap {

// Appends the values of one header, with or without padding, joined by commas if there are several
// (spaces beside a comma are the proxy's that joined them). False if one is not base64; `values` is
// then as it was. An empty header is one empty value.
bool DecodeBinaryMetadata(absl::string_view value, std::vector<std::string>& values);

// One value, without padding, which is what gRPC asks of senders.
std::string EncodeBinaryMetadata(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_BINARY_METADATA_H_
