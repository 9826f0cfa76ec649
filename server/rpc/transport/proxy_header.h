// The header of the PROXY protocol, version 2, by which a proxy says whose connection it passes on.
// HAProxy's doc/proxy-protocol.txt specifies it.
//
//   13 10 13 10 0 13 10 "QUIT" 10   signature
//   0x21                            version 2, and 1: PROXY, for a client; 0: LOCAL, for the proxy
//   0x11                            1: IPv4, 2: IPv6, 3: Unix; and 1: stream, 2: datagrams
//   length                          of the rest, two bytes, the high one first like all numbers
//   source, destination             two addresses, then two ports
//   values                          any number of: type, length in two bytes, value
//
// Whoever may send a header can pose as any address, so headers are read only from proxies that an
// operator has named (HostCounts::BeginsWithHeader), and these may not leave it out.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_PROXY_HEADER_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_PROXY_HEADER_H_

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/rpc/transport/peer.h"

namespace phimap {

// Maximum size of a header. The specification has senders fit it into 536 bytes; a client's name
// or TLS certificate among the values may take more.
inline constexpr size_t kMaxProxyHeaderBytes = 4096;

// Returns how many bytes must follow `begun`, the beginning of a header, at least: until its length
// is known, those up to there; then all; 0 if the header is complete. Never asks for a byte behind
// the header. Returns INVALID_ARGUMENT as soon as `begun` cannot become a header.
absl::StatusOr<size_t> MissingProxyHeaderBytes(absl::string_view begun);

// Returns the client that the header names; nullopt if the proxy connects for itself, as for a
// health check, or if the client has no IP address, as over a Unix socket. The peer of the
// connection is then the proxy. Values are skipped, except for a checksum (CRC-32C), which must
// fit. Returns INVALID_ARGUMENT for what the specification does not allow. REQUIRES:
// MissingProxyHeaderBytes(header) is 0.
absl::StatusOr<std::optional<Peer>> ParseProxyHeader(absl::string_view header);

// Whether a connection whose first bytes are `bytes` begins with a header of version 1 or 2.
bool BeginsAsProxyHeader(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_PROXY_HEADER_H_
