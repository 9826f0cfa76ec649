// The other end of a connection.
#ifndef PHIMAP_SERVER_TRANSPORT_PEER_H_
#define PHIMAP_SERVER_TRANSPORT_PEER_H_

#include <string>

namespace phimap {

struct Peer {
  // "ipv4:127.0.0.1:41234", "ipv6:[::1]:41234" or "unix:". An IPv4 peer of an IPv6 socket is
  // written as ipv4.
  std::string address;
  // The IP address alone, such as "127.0.0.1"; "unix" for a Unix-domain socket.
  std::string host;
  // The host for limits: the IPv4 address, or the first 64 bits of the IPv6 address, such as
  // "2001:db8:0:1::/64"; "unix" for a Unix-domain socket.
  std::string network;
  bool unix_socket = false;
  // The client has a TLS certificate signed by an authority of --tls_client_ca.
  bool certificate_verified = false;
  // SHA-256 of the client's TLS certificate in hexadecimal; empty if there is none.
  std::string certificate_digest;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_PEER_H_
