// Addresses to listen on, and which of them only this machine can reach.
#ifndef PHIMAP_SERVER_TRANSPORT_LISTEN_ADDRESS_H_
#define PHIMAP_SERVER_TRANSPORT_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// "127.0.0.1:7450" and all of 127.0.0.0/8, "[::1]:7450", "localhost:7450",
// "unix:/run/phimapd.sock". Other names are not loopback, because their addresses may change.
bool IsLoopbackAddress(absl::string_view address);

// INVALID_ARGUMENT (reason ADDRESS_INVALID) that names `flag` unless the address is "HOST:PORT"
// with a port in 0..65535, or "unix:PATH". Whether there is such a host is not looked at.
absl::Status CheckAddress(absl::string_view flag, absl::string_view address);

// INVALID_ARGUMENT (reason ADDRESS_NOT_LOOPBACK) that names `flag` unless the address is a loopback
// address or `allowed`.
absl::Status CheckReachable(absl::string_view flag, absl::string_view address, bool allowed);

// Returns `address` with this port, which replaces port 0. A unix: address is returned unchanged.
std::string WithPort(absl::string_view address, int port);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_LISTEN_ADDRESS_H_
