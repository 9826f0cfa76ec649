// Clients that misuse TLS: those that fail the handshake, and those that change keys without end.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/thread/steady_time.h"
#include "server/rpc/transport/transport.h"
#include "tests/server/support/client_socket.h"
#include "tests/server/support/raw_frames.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/certificates.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class RefuseAll final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead&, bool) override {
    const Header headers[] = {{":status", "200"}};
    stream.SendHeaders(headers, /*end=*/true);
  }
};

// A client with OpenSSL on a blocking socket.
class TlsClient {
 public:
  explicit TlsClient(int port, const char* alpn = "\x02h2", const KeyPair* own = nullptr)
      : context_(SSL_CTX_new(TLS_client_method())), fd_(ConnectToLoopback(port)) {
    // OpenSSL writes without MSG_NOSIGNAL, and the server may have hung up.
    std::signal(SIGPIPE, SIG_IGN);
    if (own != nullptr) UseCertificate(*own);
    ssl_ = SSL_new(context_);
    const std::string protocols(alpn);
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(protocols.data()),
                        static_cast<unsigned>(protocols.size()));
    SSL_set_fd(ssl_, fd_);
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    close(fd_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool Connect() { return SSL_connect(ssl_) == 1; }
  bool Send(const std::string& bytes) {
    return SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  bool ChangeKey() {
    return SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl_) == 1;
  }
  // Sends a ping, and returns whether the server answers it.
  bool RoundTrip() {
    if (!Send(Frame(NGHTTP2_PING, 0, 0, "12345678"))) return false;
    const std::string answer = Frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "12345678");
    std::string got;
    return ReadUntil([&] { return got.find(answer) != std::string::npos; }, got);
  }
  // Everything that the server still sends.
  std::string Rest() {
    std::string got;
    ReadUntil([] { return false; }, got);
    return got;
  }

 private:
  void UseCertificate(const KeyPair& own);
  template <typename Done>
  bool ReadUntil(Done done, std::string& got) {
    char piece[4096];
    while (!done()) {
      const int size = SSL_read(ssl_, piece, sizeof(piece));
      if (size <= 0) return false;
      got.append(piece, static_cast<size_t>(size));
    }
    return true;
  }

  SSL_CTX* const context_;
  const int fd_;
  SSL* ssl_ = nullptr;
};

void TlsClient::UseCertificate(const KeyPair& own) {
  TemporaryFolder folder;
  const std::string certificate = folder.path() + "/own.pem";
  const std::string key = folder.path() + "/own.key";
  ReplaceFile(certificate, own.certificate);
  ReplaceFile(key, own.key);
  PHIMAP_CHECK(SSL_CTX_use_certificate_file(context_, certificate.c_str(), SSL_FILETYPE_PEM) == 1);
  PHIMAP_CHECK(SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) == 1);
}

class TlsFloodTest : public ::testing::Test {
 protected:
  void Serve(bool asks_for_certificates = false) {
    const KeyPair pair = authority_.Issue();
    TlsFiles files{.certificate = folder_.path() + "/server.pem",
                   .key = folder_.path() + "/server.key",
                   .client_ca = ""};
    ReplaceFile(files.certificate, pair.certificate);
    ReplaceFile(files.key, pair.key);
    if (asks_for_certificates) {
      files.client_ca = folder_.path() + "/clients.pem";
      ReplaceFile(files.client_ca, authority_.certificate());
    }
    auto tls = TlsContext::Open(files).value();
    tls_ = std::move(tls);
    transport_ = std::make_unique<Transport>(Transport::Options(), refuse_, metrics_, logger_);
    auto sockets = ListeningSocket::Tcp("127.0.0.1:0").value();
    port_ = sockets.front().port();
    std::vector<Transport::Endpoint> endpoints;
    endpoints.push_back({std::move(sockets.front()), tls_.get()});
    transport_->Listen(std::move(endpoints));
  }
  std::string log() {
    MutexLock lock(&mutex_);
    return log_;
  }
  double Failed(const std::string& kind) {
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      if (family.name != "phimap_handshakes_failed_total") continue;
      for (const prometheus::ClientMetric& metric : family.metric) {
        if (metric.label.front().value == kind) return metric.counter.value;
      }
    }
    return -1;
  }

  // The client may learn of the failure before the server has counted it.
  bool AwaitFailed(const std::string& kind) {
    const auto failed = [&] {
      return Failed(kind) == 1 && absl::StrContains(log(), absl::StrCat(" reason=", kind, " "));
    };
    const absl::Time until = SteadyNow() + absl::Seconds(10);
    while (!failed() && SteadyNow() < until) std::this_thread::yield();
    return failed();
  }

  CertificateAuthority authority_{"authority"};
  prometheus::Registry registry_;
  ConnectionMetrics metrics_{registry_};
  int port_ = 0;

 private:
  TemporaryFolder folder_;
  RefuseAll refuse_;
  Mutex mutex_;
  std::string log_ ABSL_GUARDED_BY(mutex_);
  const Logger logger_{LogLevel::kInfo, [this](absl::string_view line) {
                         MutexLock lock(&mutex_);
                         log_.append(line.data(), line.size());
                       }};
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<Transport> transport_;
};

const std::string kPreface = NGHTTP2_CLIENT_MAGIC + Frame(NGHTTP2_SETTINGS, 0, 0, "");

TEST_F(TlsFloodTest, AFewKeysMayChangeBetweenData) {
  Serve();
  TlsClient client(port_);
  ASSERT_TRUE(client.Connect());
  ASSERT_TRUE(client.Send(kPreface));
  for (int i = 0; i < 50; ++i) {
    for (int key = 0; key < 7; ++key) ASSERT_TRUE(client.ChangeKey());
    ASSERT_TRUE(client.RoundTrip());
  }
  EXPECT_EQ(metrics_.ended_for_tls_records->Value(), 0);
}

// Each change costs the server 26 us, so a hundred thousand of them in one go would hold up every
// other client for seconds.
TEST_F(TlsFloodTest, KeysThatChangeWithoutEndEndTheConnectionAndItsClientIsTold) {
  Serve();
  TlsClient client(port_);
  ASSERT_TRUE(client.Connect());
  ASSERT_TRUE(client.Send(kPreface));
  ASSERT_TRUE(client.RoundTrip());
  for (int key = 0; key < 50; ++key) client.ChangeKey();
  EXPECT_THAT(client.Rest(), HasSubstr("too many TLS records without data"));
  EXPECT_EQ(metrics_.ended_for_tls_records->Value(), 1);
  EXPECT_THAT(log(), AllOf(HasSubstr("WARNING connection_ended peer=ipv4:127.0.0.1:"),
                           HasSubstr(" reason=tls_records ")));
  TlsClient other(port_);
  ASSERT_TRUE(other.Connect());
  ASSERT_TRUE(other.Send(kPreface));
  EXPECT_TRUE(other.RoundTrip());
}

TEST_F(TlsFloodTest, WhoDoesNotSpeakTlsIsCountedAndNamed) {
  Serve();
  const int fd = ConnectToLoopback(port_);
  ASSERT_GT(send(fd, kPreface.data(), kPreface.size(), 0), 0);
  std::string answer;
  char byte;
  while (recv(fd, &byte, 1, 0) > 0) answer.push_back(byte);
  close(fd);
  EXPECT_TRUE(AwaitFailed("not_tls"));
  EXPECT_THAT(answer, AllOf(HasSubstr("HTTP/1.1 400 Bad Request\r\n"),
                            HasSubstr("\r\n\r\nThis port requires TLS")));
  EXPECT_THAT(log(), AllOf(HasSubstr("WARNING handshake_failed peer=ipv4:127.0.0.1:"),
                           HasSubstr(" reason=not_tls "), HasSubstr("requires TLS")));
}

TEST_F(TlsFloodTest, WhoDoesNotOfferHttp2IsCountedAndNamed) {
  Serve();
  TlsClient client(port_, "\x08http/1.1");
  EXPECT_FALSE(client.Connect());
  EXPECT_TRUE(AwaitFailed("no_http2"));
}

TEST_F(TlsFloodTest, WhoHasNoCertificateOrAnotherAuthoritysIsCountedAndNamed) {
  Serve(/*asks_for_certificates=*/true);
  TlsClient none(port_);
  none.Connect();  // in TLS 1.3 the client learns of the refusal later
  EXPECT_THAT(none.Rest(), IsEmpty());
  EXPECT_TRUE(AwaitFailed("no_certificate"));
  CertificateAuthority strange("strange authority");
  const KeyPair pair = strange.Issue({.name = "somebody"});
  TlsClient other(port_, "\x02h2", &pair);
  other.Connect();
  EXPECT_THAT(other.Rest(), IsEmpty());
  EXPECT_TRUE(AwaitFailed("certificate")) << log();
  EXPECT_THAT(log(),
              AllOf(HasSubstr(" reason=no_certificate "), HasSubstr(" reason=certificate ")));
}

// Whoever only connects, as a probe does, is no failure.
TEST_F(TlsFloodTest, WhoHangsUpIsNotCounted) {
  Serve();
  { TlsClient client(port_); }
  TlsClient client(port_);
  ASSERT_TRUE(client.Connect());
  for (const char* kind : {"not_tls", "no_certificate", "certificate", "no_http2", "other"}) {
    EXPECT_EQ(Failed(kind), 0) << kind;
  }
}

}  // namespace
}  // namespace phimap::testing
