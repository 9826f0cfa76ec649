// Tests connections of proxies that begin with a header of the PROXY protocol: who their peer is,
// which limits hold for it, and which connections are refused.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/status/check.h"
#include "core/thread/steady_time.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/rpc/transport/transport.h"
#include "tests/server/support/raw_http2_client.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/certificates.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kProxyAddress[] = "127.0.0.1";
constexpr char kOtherAddress[] = "127.0.0.2";

// Headers, by hand from HAProxy's doc/proxy-protocol.txt. The source is 203.0.113.HOST:56324.
std::string HeaderOf(const std::string& host_hex) {
  return absl::HexStringToBytes("0d0a0d0a000d0a515549540a2111000ccb0071" + host_hex +
                                "c0a8000bdc0401bb");
}
const std::string kBehindProxy = HeaderOf("07");
const std::string kOtherBehind = HeaderOf("08");
const std::string kOfProxyItself = absl::HexStringToBytes("0d0a0d0a000d0a515549540a20000000");

// Answers each request, and notes whose it was.
class NotesPeers final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead&, bool) override {
    {
      MutexLock lock(&mutex_);
      peers_.push_back(stream.peer().address);
    }
    const Header headers[] = {{":status", "200"}};
    stream.SendHeaders(headers, /*end=*/true);
  }
  std::vector<std::string> peers() {
    MutexLock lock(&mutex_);
    return peers_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> peers_ ABSL_GUARDED_BY(mutex_);
};

void SendBytes(int fd, const std::string& bytes) {
  PHIMAP_CHECK(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size()));
}

// Everything that the server sends until it hangs up.
std::string Rest(int fd) {
  std::string rest;
  char byte;
  while (recv(fd, &byte, 1, 0) > 0) rest.push_back(byte);
  close(fd);
  return rest;
}

class ProxiedConnectionTest : public ::testing::Test {
 protected:
  void Serve(Transport::Options options = {}, TlsContext* tls = nullptr, bool http1 = false) {
    options.header_proxies = {kProxyAddress};
    std::vector<ListeningSocket> sockets = ListeningSocket::Tcp("127.0.0.1:0").value();
    Listen(options, std::move(sockets.front()), tls, http1);
  }
  void Listen(const Transport::Options& options, ListeningSocket socket, TlsContext* tls,
              bool http1) {
    transport_ = std::make_unique<Transport>(options, acceptor_, metrics_, logger_);
    port_ = socket.port();
    std::vector<Transport::Endpoint> endpoints;
    endpoints.push_back({std::move(socket), tls, {http1 ? &acceptor_ : nullptr, http1}});
    transport_->Listen(std::move(endpoints));
  }
  int Connect(const char* from = kProxyAddress) const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    PHIMAP_CHECK(inet_pton(AF_INET, from, &name.sin_addr) == 1);
    PHIMAP_CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(port_));
    PHIMAP_CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
    return fd;
  }
  // A client of HTTP/2 whose connection begins with `header`.
  std::unique_ptr<RawHttp2Client> ClientBehind(const std::string& header) const {
    const int fd = Connect();
    SendBytes(fd, header);
    return std::make_unique<RawHttp2Client>(fd);
  }
  static bool Calls(RawHttp2Client& client) { return client.AwaitEnd(client.Call("/any")); }

  // Whether the server has refused `count` connections of proxies for their headers, and has told
  // of the first.
  bool AwaitRefused(double count) {
    const auto refused = [&] {
      return metrics_.ended_for_proxy_header->Value() == count && !lines().empty();
    };
    const absl::Time until = SteadyNow() + absl::Seconds(10);
    while (!refused() && SteadyNow() < until) std::this_thread::yield();
    return refused();
  }
  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }

  TemporaryFolder folder_;
  prometheus::Registry registry_;
  ConnectionMetrics metrics_{registry_};
  NotesPeers acceptor_;
  std::unique_ptr<TlsContext> tls_;
  int port_ = 0;

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  const Logger logger_{LogLevel::kInfo, [this](absl::string_view line) {
                         MutexLock lock(&mutex_);
                         lines_.emplace_back(line);
                       }};
  std::unique_ptr<Transport> transport_;
};

TEST_F(ProxiedConnectionTest, TheClientBehindTheProxyIsThePeer) {
  Serve();
  EXPECT_TRUE(Calls(*ClientBehind(kBehindProxy)));
  EXPECT_TRUE(Calls(*ClientBehind(kOtherBehind)));
  EXPECT_THAT(acceptor_.peers(), ElementsAre("ipv4:203.0.113.7:56324", "ipv4:203.0.113.8:56324"));
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(ProxiedConnectionTest, TheProxyIsThePeerWhereItConnectsForItself) {
  Serve();
  EXPECT_TRUE(Calls(*ClientBehind(kOfProxyItself)));
  EXPECT_THAT(acceptor_.peers(), ElementsAre(StartsWith("ipv4:127.0.0.1:")));
}

TEST_F(ProxiedConnectionTest, OtherAddressesSendNoHeader) {
  Serve();
  RawHttp2Client client(Connect(kOtherAddress));
  EXPECT_TRUE(Calls(client));
  EXPECT_THAT(acceptor_.peers(), ElementsAre(StartsWith("ipv4:127.0.0.2:")));
}

// Otherwise anybody could pose as any address.
TEST_F(ProxiedConnectionTest, AHeaderOfAnotherAddressIsRefused) {
  for (const bool http1 : {false, true}) {
    SCOPED_TRACE(http1);
    Serve({}, nullptr, http1);
    const int fd = Connect(kOtherAddress);
    SendBytes(fd, kBehindProxy);
    EXPECT_FALSE(Calls(*std::make_unique<RawHttp2Client>(fd)));
    EXPECT_THAT(acceptor_.peers(), IsEmpty());
    EXPECT_EQ(metrics_.ended_for_other_protocol->Value(), http1 ? 2 : 1);
    EXPECT_THAT(lines().back(), AllOf(HasSubstr("WARNING connection_ended peer=ipv4:127.0.0.2:"),
                                      HasSubstr("begins with a header of the PROXY protocol")));
  }
}

TEST_F(ProxiedConnectionTest, AProxyThatSendsNoHeaderIsRefusedCountedAndToldOf) {
  Serve();
  RawHttp2Client client(Connect());
  EXPECT_FALSE(Calls(client));
  EXPECT_THAT(acceptor_.peers(), IsEmpty());
  EXPECT_TRUE(AwaitRefused(1));
  EXPECT_EQ(metrics_.ended_for_other_protocol->Value(), 0);
  EXPECT_THAT(lines(),
              ElementsAre(AllOf(HasSubstr("WARNING connection_ended peer=ipv4:127.0.0.1:"),
                                HasSubstr(" reason=proxy_header "),
                                HasSubstr("does not begin with a header of the PROXY protocol"),
                                HasSubstr("send-proxy-v2"))));
}

TEST_F(ProxiedConnectionTest, AMalformedHeaderIsRefused) {
  Serve();
  std::string wrong = kBehindProxy;
  wrong[13] = 0x41;  // an unknown family
  EXPECT_FALSE(Calls(*ClientBehind(wrong)));
  EXPECT_TRUE(AwaitRefused(1));
  EXPECT_FALSE(Calls(*ClientBehind("PROXY TCP4 203.0.113.7 192.168.0.11 56324 443\r\n")));
  EXPECT_TRUE(AwaitRefused(2));
  const int half = Connect();
  SendBytes(half, kBehindProxy.substr(0, 20));
  shutdown(half, SHUT_WR);
  EXPECT_EQ(Rest(half), "");
  EXPECT_TRUE(AwaitRefused(3));
  EXPECT_THAT(acceptor_.peers(), IsEmpty());
}

TEST_F(ProxiedConnectionTest, AHeaderThatComesByteByByteIsRead) {
  Serve();
  const int fd = Connect();
  for (const char byte : kBehindProxy) SendBytes(fd, std::string(1, byte));
  EXPECT_TRUE(Calls(*std::make_unique<RawHttp2Client>(fd)));
  EXPECT_THAT(acceptor_.peers(), ElementsAre("ipv4:203.0.113.7:56324"));
}

TEST_F(ProxiedConnectionTest, AHeaderMustArriveWithinTheTimeOfAHandshake) {
  Transport::Options options;
  options.limits.handshake_time = absl::Milliseconds(50);
  Serve(options);
  EXPECT_EQ(Rest(Connect()), "");  // returns when the server hangs up
  EXPECT_TRUE(AwaitRefused(1));
  const int half = Connect();
  SendBytes(half, kBehindProxy.substr(0, kBehindProxy.size() - 1));
  EXPECT_EQ(Rest(half), "");
  EXPECT_TRUE(AwaitRefused(2));
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("the header did not arrive in time")));
}

// As the check of a load balancer does that only looks whether the port is open.
TEST_F(ProxiedConnectionTest, WhoOnlyConnectsIsNoFault) {
  Serve();
  close(Connect());
  EXPECT_TRUE(Calls(*ClientBehind(kBehindProxy)));  // behind the other in the loop
  EXPECT_EQ(metrics_.ended_for_proxy_header->Value(), 0);
}

TEST_F(ProxiedConnectionTest, LimitsOfAnAddressAreThoseOfTheClient) {
  Serve({.max_connections_per_host = 1});
  auto first = ClientBehind(kBehindProxy);
  EXPECT_TRUE(Calls(*first));
  EXPECT_FALSE(Calls(*ClientBehind(kBehindProxy)));
  EXPECT_EQ(metrics_.refused_by_address->Value(), 1);
  EXPECT_THAT(lines(), ElementsAre(AllOf(
                           HasSubstr("WARNING connections_refused_by_address address=203.0.113.7 "),
                           HasSubstr(" limit=1 "))));
  auto other = ClientBehind(kOtherBehind);
  EXPECT_TRUE(Calls(*other));
  // The proxy itself has no limit.
  auto local = ClientBehind(kOfProxyItself);
  auto other_local = ClientBehind(kOfProxyItself);
  EXPECT_TRUE(Calls(*local));
  EXPECT_TRUE(Calls(*other_local));
  // The place of a connection that has ended is free again.
  first = nullptr;
  const absl::Time until = SteadyNow() + absl::Seconds(10);
  while (!Calls(*ClientBehind(kBehindProxy)) && SteadyNow() < until) {
  }
  EXPECT_LT(SteadyNow(), until);
}

TEST_F(ProxiedConnectionTest, AClientAtTheAddressOfTheProxyHasItsLimits) {
  Serve({.max_connections_per_host = 1});
  const std::string header =
      absl::HexStringToBytes("0d0a0d0a000d0a515549540a2111000c7f0000017f000001dc0401bb");
  auto first = ClientBehind(header);
  EXPECT_TRUE(Calls(*first));
  EXPECT_FALSE(Calls(*ClientBehind(header)));
}

TEST_F(ProxiedConnectionTest, AHeaderComesBeforeARequestOfHttp1) {
  Serve({}, nullptr, /*http1=*/true);
  const int fd = Connect();
  SendBytes(fd, kBehindProxy + "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(Rest(fd), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(acceptor_.peers(), ElementsAre("ipv4:203.0.113.7:56324"));
}

TEST_F(ProxiedConnectionTest, UnixSocketsAreOneProxy) {
  const std::string path = folder_.path() + "/socket";
  Transport::Options options;
  options.header_proxies = {"unix"};
  Listen(options, ListeningSocket::Unix(path).value(), nullptr, /*http1=*/false);
  const auto connect_to = [&path] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    PHIMAP_CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
    return fd;
  };
  const int fd = connect_to();
  SendBytes(fd, kBehindProxy);
  EXPECT_TRUE(Calls(*std::make_unique<RawHttp2Client>(fd)));
  EXPECT_THAT(acceptor_.peers(), ElementsAre("ipv4:203.0.113.7:56324"));
  EXPECT_FALSE(Calls(*std::make_unique<RawHttp2Client>(connect_to())));
  EXPECT_TRUE(AwaitRefused(1));
}

// The first bytes of TLS may come in the packet of the header.
TEST_F(ProxiedConnectionTest, AHeaderComesBeforeTls) {
  std::signal(SIGPIPE, SIG_IGN);
  const KeyPair pair = CertificateAuthority("authority").Issue();
  const TlsFiles files{.certificate = folder_.path() + "/server.pem",
                       .key = folder_.path() + "/server.key",
                       .client_ca = ""};
  ReplaceFile(files.certificate, pair.certificate);
  ReplaceFile(files.key, pair.key);
  tls_ = TlsContext::Open(files).value();
  Serve({}, tls_.get(), /*http1=*/true);
  const int fd = Connect();
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  EXPECT_LT(SSL_connect(ssl), 1);  // has written its first message, to memory
  std::string hello(4096, '\0');
  const int size = BIO_read(SSL_get_wbio(ssl), hello.data(), static_cast<int>(hello.size()));
  ASSERT_GT(size, 0);
  SendBytes(fd, kBehindProxy + hello.substr(0, static_cast<size_t>(size)));
  SSL_set_fd(ssl, fd);
  EXPECT_EQ(SSL_connect(ssl), 1);
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_GT(SSL_write(ssl, request.data(), static_cast<int>(request.size())), 0);
  char answer[16];
  EXPECT_GT(SSL_read(ssl, answer, sizeof(answer)), 0);
  EXPECT_THAT(acceptor_.peers(), ElementsAre("ipv4:203.0.113.7:56324"));
  SSL_free(ssl);
  SSL_CTX_free(context);
  close(fd);
}

}  // namespace
}  // namespace phimap::testing
