// The other end of a connection.
#ifndef PHIMAP_SERVER_TRANSPORT_PEER_H_
#define PHIMAP_SERVER_TRANSPORT_PEER_H_

#include <string>

namespace phimap {

struct Peer {
  // "ipv4:127.0.0.1:41234", "ipv6:[::1]:41234" or "unix:"; an IPv4 address is written as such, for
  // sockets of any family.
  std::string address;
  // The address without its port.
  std::string host;
  bool unix_socket = false;
  // A client certificate that an authority of --tls_client_ca has signed.
  bool certificate_verified = false;
  // The certificate's SHA-256 in hexadecimal; empty without one.
  std::string certificate_digest;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_PEER_H_
