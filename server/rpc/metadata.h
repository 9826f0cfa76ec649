// How the metadata of gRPC writes and reads values: texts, bytes (names that end in "-bin") and the
// timeout of a call.
#ifndef PHIMAP_SERVER_RPC_METADATA_H_
#define PHIMAP_SERVER_RPC_METADATA_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// For grpc-message. Writes every byte from ' ' to '~' except '%' as it is, and any other byte as
// %XX. A space at either end is also written as %20, because HTTP strips spaces from the ends of a
// header, and some libraries reject such a header. The result is at most three times as long as
// `utf8`. Pure.
std::string PercentEncode(absl::string_view utf8);

// Encodes the bytes of a value as base64 (RFC 4648, with '+' and '/'), without padding, as gRPC
// requires of senders.
std::string EncodeBinaryMetadata(absl::string_view bytes);

// Parses the value of grpc-timeout, how long a caller will wait: 1 to 8 digits and a unit: H, M, S,
// m (1e-3 s), u (1e-6 s) or n (1e-9 s). Returns nullopt for anything else. A timeout of zero is a
// deadline that has already passed. Pure; allocates nothing.
std::optional<absl::Duration> ParseGrpcTimeout(absl::string_view value);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_METADATA_H_
