// Metadata whose names end in "-bin". Their values are bytes, encoded as base64 (RFC 4648, with '+'
// and '/').
#ifndef PHIMAP_SERVER_CALLS_BINARY_METADATA_H_
#define PHIMAP_SERVER_CALLS_BINARY_METADATA_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

// Encodes one value, without padding, as gRPC requires of senders.
std::string EncodeBinaryMetadata(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_BINARY_METADATA_H_
