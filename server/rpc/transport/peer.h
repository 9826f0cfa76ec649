// The other end of a connection.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_PEER_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_PEER_H_

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

struct Peer {
  // "ipv4:127.0.0.1:41234", "ipv6:[::1]:41234" or "unix:uid=1000", the user of a Unix socket's
  // client. An IPv4 peer of an IPv6 socket is written as ipv4.
  std::string address;
  // The IP address alone, such as "127.0.0.1"; "unix" for a Unix-domain socket.
  std::string host;
  // The host for limits: the IPv4 address, or the first 64 bits of the IPv6 address, such as
  // "2001:db8:0:1::/64"; "unix" for a Unix-domain socket.
  std::string network;
  bool unix_socket = false;
  // The user of the process at the other end of a Unix-domain socket.
  std::optional<uint32_t> user;
  // The peer is a proxy of --proxy_protocol, which has not said yet for whom it connects, or has
  // said that it connects for itself.
  bool proxy = false;
  // The client has a TLS certificate signed by an authority of --tls_client_ca.
  bool certificate_verified = false;
  // SHA-256 of the client's TLS certificate in hexadecimal; empty if there is none.
  std::string certificate_digest;
  // Its subject alternative names: "DNS:NAME", "URI:NAME", "email:ADDRESS", "IP:ADDRESS".
  std::vector<std::string> certificate_names;
};

// The peer of a connection from `address` and `port`, both of TCP.
Peer PeerAt(const in_addr& address, int port);
Peer PeerAt(const in6_addr& address, int port);
// The peer of a connection over a Unix socket.
Peer UnixPeer();

// Texts of IP addresses.

// Returns text such as "10.0.0.7".
std::string IpAddressText(const in_addr& address);
// Returns text such as "fe80::1". An IPv4-mapped address (::ffff:10.0.0.7), which a dual-stack
// socket reports for an IPv4 peer, is written as the IPv4 address.
std::string IpAddressText(const in6_addr& address);
// Returns the network of 64 bits that `address` is in, such as "2001:db8:0:1::/64".
std::string NetworkText(const in6_addr& address);
// Whether `address` is an IPv4-mapped address.
inline bool IsIpv4(const in6_addr& address) { return IN6_IS_ADDR_V4MAPPED(&address); }

// Returns the canonical text of the IP address in `text`. For anything else, such as a host name,
// a port or a network, returns INVALID_ARGUMENT (reason ADDRESS_INVALID), which names `flag`.
absl::StatusOr<std::string> CanonicalIpAddress(absl::string_view flag, const std::string& text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_PEER_H_
