// The operator's list of kernel services, as flags give it.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_ADDRESS_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// One service. Kernels and versions name it; only the operator knows its address.
struct KernelAddress {
  std::string name;
  // "HOST:PORT" or "unix:PATH".
  std::string target;
  bool tls = false;
};

// "NAME=HOST:PORT", "NAME=unix:PATH", or "NAME=tls:HOST:PORT", NAME a lower-case letter and at most
// 62 more, digits and '_'. INVALID_ARGUMENT (KERNEL_SERVICE_INVALID).
absl::StatusOr<KernelAddress> ParseKernelAddress(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_ADDRESS_H_
