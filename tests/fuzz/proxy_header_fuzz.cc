// Checks the parser of the PROXY protocol's header, and connections that begin with one. The input
// is everything that a proxy sends.
//
// No more bytes are asked for than a header may have, a client that a header names has an IP
// address in its canonical form, and the server ends each connection whose proxy hangs up.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/status/check.h"
#include "prometheus/registry.h"
#include "server/rpc/transport/proxy_header.h"
#include "server/rpc/transport/transport.h"
#include "tests/fuzz/converse.h"
#include "tests/server/support/client_socket.h"

namespace phimap {
namespace {

class RefuseAll final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead&, bool) override {
    PHIMAP_CHECK(!stream.peer().address.empty());
    const Header headers[] = {{":status", "200"}};
    stream.SendHeaders(headers, /*end=*/true);
  }
};

// A transport that takes each of its clients for a proxy, on a free port.
class HeaderServer {
 public:
  HeaderServer() {
    std::vector<ListeningSocket> sockets = *ListeningSocket::Tcp("127.0.0.1:0");
    port_ = sockets.front().port();
    std::vector<Transport::Endpoint> endpoints;
    endpoints.push_back({std::move(sockets.front())});
    transport_.Listen(std::move(endpoints));
  }

  int Connect() const { return testing::ConnectToLoopback(port_); }

 private:
  RefuseAll refuse_;
  prometheus::Registry registry_;
  const ConnectionMetrics metrics_{registry_};
  const Logger logger_{LogLevel::kOff};
  Transport transport_{Transport::Options{.header_proxies = {"127.0.0.1"}}, refuse_, metrics_,
                       logger_};
  int port_ = 0;
};

// Reads the header as a connection does. Returns its size; 0 if it is refused or incomplete.
size_t ReadHeader(absl::string_view input) {
  size_t begun = 0;
  while (true) {
    const absl::StatusOr<size_t> missing = MissingProxyHeaderBytes(input.substr(0, begun));
    if (!missing.ok()) return 0;
    if (*missing == 0) return begun;
    PHIMAP_CHECK(begun + *missing <= kMaxProxyHeaderBytes);
    if (begun + *missing > input.size()) return 0;
    begun += *missing;
  }
}

void CheckClient(const Peer& client) {
  PHIMAP_CHECK(!client.proxy && !client.unix_socket && !client.certificate_verified);
  const absl::StatusOr<std::string> canonical = CanonicalIpAddress("client", client.host);
  PHIMAP_CHECK(canonical.ok() && *canonical == client.host);
}

}  // namespace
}  // namespace phimap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const phimap::HeaderServer server;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t header = phimap::ReadHeader(input);
  if (header > 0) {
    const auto client = phimap::ParseProxyHeader(input.substr(0, header));
    if (client.ok() && client->has_value()) phimap::CheckClient(**client);
  }
  phimap::Converse(server.Connect(), data, size);
  return 0;
}
