// Checks that the server ends each TLS connection whose client hangs up, whatever records it sent.
//
// The first byte of the input says what its rest is: if it is even, everything that the client
// sends, from the first byte of the handshake on; if it is odd, what the client does after a
// handshake:
//   byte 0 mod 3: changes its key;
//   byte 1 mod 3: sends the next N bytes as data, where N is the next byte;
//   byte 2 mod 3: sends the next N bytes beside TLS, as an attacker on the way could.

#include <openssl/ssl.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status/check.h"
#include "server/rpc/transport/transport.h"
#include "tests/fuzz/converse.h"
#include "tests/server/support/client_socket.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/certificates.h"

namespace phimap {
namespace {

class RefuseAll final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead&, bool) override {
    const Header headers[] = {{":status", "200"}};
    stream.SendHeaders(headers, /*end=*/true);
  }
};

// A transport that requires TLS, on a free port.
class TlsServer {
 public:
  TlsServer() {
    const testing::KeyPair pair = testing::CertificateAuthority("authority").Issue();
    const TlsFiles files{.certificate = folder_.path() + "/server.pem",
                         .key = folder_.path() + "/server.key",
                         .client_ca = ""};
    testing::ReplaceFile(files.certificate, pair.certificate);
    testing::ReplaceFile(files.key, pair.key);
    tls_ = *TlsContext::Open(files);
    std::vector<ListeningSocket> sockets = *ListeningSocket::Tcp("127.0.0.1:0");
    port_ = sockets.front().port();
    std::vector<Transport::Endpoint> endpoints;
    endpoints.push_back({std::move(sockets.front()), tls_.get()});
    transport_.Listen(std::move(endpoints));
  }

  int Connect() const { return testing::ConnectToLoopback(port_); }

 private:
  testing::TemporaryFolder folder_;
  RefuseAll refuse_;
  prometheus::Registry registry_;
  const ConnectionMetrics metrics_{registry_};
  const Logger logger_{LogLevel::kError, [](absl::string_view) {}};
  std::unique_ptr<TlsContext> tls_;
  Transport transport_{Transport::Options{.proxies = {"127.0.0.1"}}, refuse_, metrics_, logger_};
  int port_ = 0;
};

// Does what `data` says after a handshake.
void Act(SSL* ssl, int fd, const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const int what = data[i] % 3;
    if (what == 0) {
      if (SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return;
      if (SSL_do_handshake(ssl) != 1) return;
      continue;
    }
    if (++i >= size) return;
    const size_t bytes = std::min<size_t>(data[i], size - i - 1);
    if (bytes == 0) continue;
    const bool sent = what == 1 ? SSL_write(ssl, data + i + 1, static_cast<int>(bytes)) > 0
                                : send(fd, data + i + 1, bytes, MSG_NOSIGNAL) > 0;
    if (!sent) return;
    i += bytes;
  }
}

}  // namespace
}  // namespace phimap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // OpenSSL's client writes to connections that the server has closed.
  static const auto ignored = signal(SIGPIPE, SIG_IGN);
  static_cast<void>(ignored);
  static const phimap::TlsServer server;
  static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  const int fd = server.Connect();
  if (data[0] % 2 == 0) {
    phimap::Converse(fd, data + 1, size - 1);
    return 0;
  }
  SSL* const ssl = SSL_new(context);
  const std::string protocols("\x02h2");
  SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(protocols.data()), 3);
  SSL_set_fd(ssl, fd);
  PHIMAP_CHECK(SSL_connect(ssl) == 1);
  phimap::Act(ssl, fd, data + 1, size - 1);
  SSL_free(ssl);
  phimap::Converse(fd, nullptr, 0);
  return 0;
}
