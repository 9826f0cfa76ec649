#include "server/rpc/transport/peer.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {

Peer PeerAt(const in_addr& address, int port) {
  Peer peer;
  peer.host = peer.network = IpAddressText(address);
  peer.address = absl::StrCat("ipv4:", peer.host, ":", port);
  return peer;
}

Peer PeerAt(const in6_addr& address, int port) {
  Peer peer;
  peer.host = IpAddressText(address);
  peer.network = IsIpv4(address) ? peer.host : NetworkText(address);
  peer.address = IsIpv4(address) ? absl::StrCat("ipv4:", peer.host, ":", port)
                                 : absl::StrCat("ipv6:[", peer.host, "]:", port);
  return peer;
}

Peer UnixPeer() {
  Peer peer;
  peer.unix_socket = true;
  peer.host = peer.network = "unix";
  peer.address = "unix:";
  return peer;
}

std::string IpAddressText(const in_addr& address) {
  std::array<char, INET_ADDRSTRLEN> text = {};
  inet_ntop(AF_INET, &address, text.data(), text.size());
  return text.data();
}

std::string IpAddressText(const in6_addr& address) {
  if (IsIpv4(address)) {
    in_addr v4{};
    // The IPv4 address is the last four of the sixteen bytes.
    std::memcpy(&v4, address.s6_addr + 12, sizeof(v4));
    return IpAddressText(v4);
  }
  std::array<char, INET6_ADDRSTRLEN> text = {};
  inet_ntop(AF_INET6, &address, text.data(), text.size());
  return text.data();
}

std::string NetworkText(const in6_addr& address) {
  in6_addr network = address;
  std::memset(network.s6_addr + 8, 0, 8);
  return absl::StrCat(IpAddressText(network), "/64");
}

absl::StatusOr<std::string> CanonicalIpAddress(absl::string_view flag, const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return IpAddressText(v4);
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return IpAddressText(v6);
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kAddressInvalid, flag,
                   absl::StrCat("expected an IP address without a port, such as 10.0.0.7 or ",
                                "fd00::7, got \"", text, "\""),
                   {{"address", text}});
}

}  // namespace phimap
