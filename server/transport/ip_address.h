// IP addresses in one text form, so that equal addresses have equal texts.
#ifndef PHIMAP_SERVER_TRANSPORT_IP_ADDRESS_H_
#define PHIMAP_SERVER_TRANSPORT_IP_ADDRESS_H_

#include <netinet/in.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// "10.0.0.7".
std::string IpAddressText(const in_addr& address);
// "fe80::1"; an IPv4 address that is mapped into IPv6 (::ffff:10.0.0.7), as a socket that serves
// both families sees it, is the IPv4 address.
std::string IpAddressText(const in6_addr& address);
// Whether it is such a mapped address.
inline bool IsIpv4(const in6_addr& address) { return IN6_IS_ADDR_V4MAPPED(&address); }

// Canonical form of an address in text. INVALID_ARGUMENT (reason ADDRESS_INVALID) names `flag` for
// anything else, such as names of hosts, ports and networks.
absl::StatusOr<std::string> CanonicalIpAddress(absl::string_view flag, const std::string& text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_IP_ADDRESS_H_
