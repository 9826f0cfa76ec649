// The operator's list of kernel services, as given by flags.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_ADDRESS_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// One service. Kernels and versions refer to a service by its name; only the operator knows its
// address.
struct KernelAddress {
  std::string name;
  // "HOST:PORT" or "unix:PATH".
  std::string target;
  bool tls = false;
};

// Parses "NAME=HOST:PORT", "NAME=unix:PATH" or "NAME=tls:HOST:PORT". NAME is a lower-case letter
// followed by at most 62 lower-case letters, digits and '_'. Otherwise returns INVALID_ARGUMENT
// (KERNEL_SERVICE_INVALID).
absl::StatusOr<KernelAddress> ParseKernelAddress(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_ADDRESS_H_
