// Checks of addresses to listen on.
#ifndef PHIMAP_SERVER_TRANSPORT_LISTEN_ADDRESS_H_
#define PHIMAP_SERVER_TRANSPORT_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Whether only this machine can reach `address`: 127.0.0.0/8 ("127.0.0.1:7450"), "[::1]:7450",
// "localhost:7450" and "unix:/run/phimapd.sock". Other host names do not count, because the
// addresses that they resolve to may change.
bool IsLoopbackAddress(absl::string_view address);

// Returns INVALID_ARGUMENT (reason ADDRESS_INVALID) that names `flag`, unless `address` is
// "HOST:PORT" with a port in 0..65535, or "unix:PATH". Does not check whether the host exists.
absl::Status CheckAddress(absl::string_view flag, absl::string_view address);

// Returns INVALID_ARGUMENT (reason ADDRESS_NOT_LOOPBACK) that names `flag`, unless `address` is a
// loopback address or `allowed` is true.
absl::Status CheckReachable(absl::string_view flag, absl::string_view address, bool allowed);

// Returns `address` with its port replaced by `port`, to show which port was chosen for port 0. A
// unix: address is returned unchanged.
std::string WithPort(absl::string_view address, int port);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_LISTEN_ADDRESS_H_
