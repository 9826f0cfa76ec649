// Tests access control, as an operator configures it with flags.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/support/certificates.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

using testing::CertificateAuthority;
using testing::KeyPair;
using testing::ReplaceFile;

constexpr char kToken[] = "reader-token-0123456789";

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    const KeyPair pair = authority_.Issue();
    ReplaceFile(certificate_, pair.certificate);
    ReplaceFile(key_, pair.key);
    ReplaceFile(clients_, authority_.certificate());
    ReplaceFile(expired_, authority_.Revoked({}, /*days=*/-1));
    ReplaceFile(tokens_, absl::StrCat("reader ", kToken, "\n"));
  }

  std::vector<std::string> Tls() const {
    return {"--tls_certificate=" + certificate_, "--tls_key=" + key_};
  }
  grpc::Status List(const std::string& address, const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    v1::ListMappingsResponse response;
    const auto channel = grpc::CreateChannel(
        address, grpc::SslCredentials({.pem_root_certs = authority_.certificate(),
                                       .pem_private_key = {},
                                       .pem_cert_chain = {}}));
    return v1::MappingService::NewStub(channel)->ListMappings(&context, {}, &response);
  }

  TemporaryFolder folder_;
  const std::string data_dir_ = folder_.path() + "/data";
  const std::string certificate_ = folder_.path() + "/server.pem";
  const std::string key_ = folder_.path() + "/server.key";
  const std::string clients_ = folder_.path() + "/clients.pem";
  const std::string expired_ = folder_.path() + "/expired.pem";
  const std::string tokens_ = folder_.path() + "/tokens";
  CertificateAuthority authority_{"phimap test authority"};
};

TEST_F(AccessTest, AnAddressThatOthersReachNeedsEncryptionAndSomeoneToAskWhoCalls) {
  std::vector<std::string> tls_only = Tls();
  std::vector<std::string> tokens_only = {"--token_file=" + tokens_};
  std::vector<std::string> http = Tls();
  http.insert(http.end(), {"--token_file=" + tokens_, "--http=0.0.0.0:0"});
  for (std::vector<std::string> flags : {tls_only, tokens_only, http}) {
    SCOPED_TRACE(flags.back());
    flags.insert(flags.begin(), {PHIMAPD_BINARY, "--data_dir=" + data_dir_, "--listen=0.0.0.0:0"});
    const ProcessResult refused = RunProcess(flags);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--insecure"));
    EXPECT_FALSE(std::filesystem::exists(data_dir_));
  }
}

TEST_F(AccessTest, WithBothItIsServedAndTokensAreNeverLogged) {
  std::vector<std::string> flags = Tls();
  flags.insert(flags.end(), {"--token_file=" + tokens_, "--listen=0.0.0.0:0", "--log_level=debug"});
  ServerProcess server(data_dir_, flags);
  // The address is not "localhost", because c-ares, which would resolve the name, leaks ten bytes
  // at each lookup.
  const std::string address =
      absl::StrCat("127.0.0.1", server.address().substr(server.address().rfind(':')));
  const grpc::Status known = List(address, kToken);
  EXPECT_TRUE(known.ok()) << known.error_message();
  EXPECT_EQ(List(address, "another-token-0123456789").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(List(address, "").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  ReplaceFile(tokens_, "reader wrong-token-0123456789!\n");  // invalid, because of the "!"
  EXPECT_THAT(server.process().AwaitErrors("tokens_not_loaded"), HasSubstr("tokens_not_loaded"));
  ReplaceFile(key_, "no key\n");
  EXPECT_THAT(server.process().AwaitErrors("tls_files_wrong"), HasSubstr("tls_files_wrong"));
  const std::string metrics = HttpGet(server.http_address(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("phimap_reload_failures_total{file=\"tokens\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("phimap_reload_failures_total{file=\"tls\"} 1\n"));
  // The certificates of this test are valid for at least a day and less than a century.
  const double left = MetricOf(server, "phimap_tls_certificate_not_after_seconds") -
                      absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_GT(left, 3600);
  EXPECT_LT(left, 100 * 366 * 86400.0);
  server.process().Signal(SIGTERM);
  const ProcessResult result = server.process().Wait();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("TOKEN_UNKNOWN"));
  EXPECT_THAT(result.err, HasSubstr("TOKEN_MISSING"));
  EXPECT_THAT(result.err, HasSubstr("tls "));
  EXPECT_THAT(result.err, Not(HasSubstr("-token-")));
}

// A build that waits for rows.
struct WaitingBuild {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::BuildRequest, v1::BuildResponse>> stream;
  // Whether the server has accepted it.
  bool accepted = false;

  WaitingBuild(v1::MappingService::Stub& stub, const std::string& token, int number) {
    context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    stream = stub.Build(&context);
    v1::BuildRequest request;
    request.mutable_spec()->set_name("letter");
    request.mutable_spec()->set_build_id(
        absl::StrCat("00000000-0000-4000-8000-00000000000", number));
    request.mutable_spec()->set_spec("f2(landmarks=5)");
    request.mutable_spec()->set_kernel("rbf(gamma=1)");
    v1::BuildResponse event;
    accepted = stream->Write(request) && stream->Read(&event);
  }
  grpc::Status End() {
    v1::BuildResponse event;
    while (stream->Read(&event)) continue;
    return stream->Finish();
  }
};

// A build that waits for rows ends, and is built by nobody.
TEST_F(AccessTest, AStreamEndsWhenItsTokenIsTakenOutOrExpires) {
  constexpr int kLeaving = 5;
  const std::string stays = "mill builder staying-token-0123456789\n";
  const auto leaving = [&](int from) {
    std::string lines = stays;
    for (int i = from; i < kLeaving; ++i) {
      absl::StrAppend(&lines, "shop", i, " builder leaving-token-0123456789-", i, "\n");
    }
    return lines;
  };
  ReplaceFile(tokens_, leaving(0));
  std::vector<std::string> flags = Tls();
  flags.insert(flags.end(), {"--token_file=" + tokens_, "--listen=127.0.0.1:0"});
  ServerProcess server(data_dir_, flags);
  const auto channel = grpc::CreateChannel(
      server.address(), grpc::SslCredentials({.pem_root_certs = authority_.certificate(),
                                              .pem_private_key = {},
                                              .pem_cert_chain = {}}));
  const auto stub = v1::MappingService::NewStub(channel);
  WaitingBuild goes_on(*stub, "staying-token-0123456789", 0);
  EXPECT_TRUE(goes_on.accepted);
  std::vector<absl::Duration> took;
  for (int i = 0; i < kLeaving; ++i) {
    WaitingBuild leaves(*stub, absl::StrCat("leaving-token-0123456789-", i), 1);
    EXPECT_TRUE(leaves.accepted);
    ReplaceFile(tokens_, leaving(i + 1));
    const absl::Time taken_out = absl::Now();
    const grpc::Status left = leaves.End();
    took.push_back(absl::Now() - taken_out);
    EXPECT_EQ(left.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(left.error_message(), HasSubstr("taken out of this server's file"));
  }
  // The median, because a processor that other tests use may be late now and then.
  std::sort(took.begin(), took.end());
  EXPECT_LT(took[kLeaving / 2], absl::Seconds(1));

  std::unique_ptr<WaitingBuild> expires;
  // Longer, if the machine is too busy to begin a build before.
  for (int seconds = 3; expires == nullptr || !expires->accepted; seconds *= 2) {
    ASSERT_LT(seconds, 100);
    const std::string token = absl::StrCat("expiring-token-0123456789-", seconds);
    ReplaceFile(tokens_, absl::StrCat("builder ", token, " until=",
                                      absl::FormatTime(absl::RFC3339_sec,
                                                       absl::Now() + absl::Seconds(seconds),
                                                       absl::UTCTimeZone()),
                                      "\n# changed\n", stays));
    // Until the server has read the file.
    while (List(server.address(), token).error_message().find("does not know") !=
           std::string::npos) {
      std::this_thread::yield();
    }
    expires = std::make_unique<WaitingBuild>(*stub, token, 2);
  }
  const grpc::Status expired = expires->End();
  EXPECT_EQ(expired.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(expired.error_message(), HasSubstr("was valid until"));
  goes_on.context.TryCancel();
  EXPECT_EQ(goes_on.End().error_code(), grpc::StatusCode::CANCELLED);
  server.process().Signal(SIGTERM);
  const ProcessResult result = server.process().Wait();
  EXPECT_THAT(result.err, HasSubstr("caller=shop0"));
  EXPECT_THAT(result.err, HasSubstr("caller=mill"));
}

TEST_F(AccessTest, ClientCertificatesStandInForTokens) {
  std::vector<std::string> flags = Tls();
  flags.insert(flags.end(), {"--tls_client_ca=" + clients_, "--listen=0.0.0.0:0",
                             "--client_certificate_role=builder"});
  ServerProcess server(data_dir_, flags);
  EXPECT_NE(server.address(), "");
}

std::shared_ptr<grpc::Channel> ChannelWith(const std::string& address, const std::string& authority,
                                           const KeyPair& pair) {
  grpc::ChannelArguments fresh;  // no connection of an earlier channel
  fresh.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address,
                                   grpc::SslCredentials({.pem_root_certs = authority,
                                                         .pem_private_key = pair.key,
                                                         .pem_cert_chain = pair.certificate}),
                                   fresh);
}

// Whether a client with this certificate may list mappings, and what the server says if not.
grpc::Status ListWith(const std::string& address, const std::string& authority,
                      const KeyPair& pair) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ListMappingsResponse response;
  return v1::MappingService::NewStub(ChannelWith(address, authority, pair))
      ->ListMappings(&context, {}, &response);
}

TEST_F(AccessTest, ACertificateStandsForACallerOfTheTokenFile) {
  const KeyPair team = authority_.Issue({.name = "team", .names = "DNS:team.example"});
  const KeyPair spiffe = authority_.Issue({.name = "x", .names = "URI:spiffe://example/risk"});
  const KeyPair unknown = authority_.Issue({.name = "team.example", .names = "DNS:other.example"});
  ReplaceFile(tokens_,
              "team reader certificate:DNS:team.example\n"
              "risk reader certificate:URI:spiffe://example/risk\n");
  std::vector<std::string> flags = Tls();
  flags.insert(flags.end(), {"--tls_client_ca=" + clients_, "--listen=127.0.0.1:0",
                             "--token_file=" + tokens_, "--log_level=debug"});
  ServerProcess server(data_dir_, flags);
  const std::string authority = authority_.certificate();
  EXPECT_TRUE(ListWith(server.address(), authority, team).ok());
  EXPECT_TRUE(ListWith(server.address(), authority, spiffe).ok());
  // The name of the subject does not count, which anybody may choose.
  EXPECT_EQ(ListWith(server.address(), authority, unknown).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  server.process().Signal(SIGTERM);
  const ProcessResult result = server.process().Wait();
  EXPECT_THAT(result.err, HasSubstr("caller=team"));
  EXPECT_THAT(result.err, HasSubstr("caller=risk"));
}

// A build whose rows go on coming.
class OpenBuild {
 public:
  OpenBuild(const std::string& address, const std::string& authority, const KeyPair& pair)
      : stub_(v1::MappingService::NewStub(ChannelWith(address, authority, pair))) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = stub_->Build(&context_);
    v1::BuildRequest request;
    request.mutable_spec()->set_name("letter");
    request.mutable_spec()->set_build_id(
        absl::StrCat("00000000-0000-4000-8000-00000000000", ++count_));
    request.mutable_spec()->set_spec("f2(landmarks=5)");
    request.mutable_spec()->set_kernel("rbf(gamma=1)");
    EXPECT_TRUE(stream_->Write(request));
    v1::BuildResponse accepted;
    EXPECT_TRUE(stream_->Read(&accepted));
  }
  ~OpenBuild() { Cancel(); }

  bool Write() {
    v1::BuildRequest rows;
    v1::DenseRows& dense = *rows.mutable_examples()->mutable_dense();
    dense.set_rows(1);
    dense.set_columns(1);
    dense.set_float32_le(std::string(4, '\0'));
    return stream_->Write(rows);
  }
  grpc::Status WriteUntilItEnds() {
    while (Write()) std::this_thread::yield();
    return stream_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  static inline int count_ = 0;
  const std::unique_ptr<v1::MappingService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::BuildRequest, v1::BuildResponse>> stream_;
};

TEST_F(AccessTest, ARevokedCertificateIsRefused) {
  const KeyPair good = authority_.Issue();
  const KeyPair bad = authority_.Issue();
  const std::string revoked = folder_.path() + "/revoked.pem";
  ReplaceFile(revoked, authority_.Revoked({}));
  std::vector<std::string> flags = Tls();
  flags.insert(flags.end(), {"--tls_client_ca=" + clients_, "--tls_client_crl=" + revoked,
                             "--client_certificate_role=builder", "--listen=127.0.0.1:0"});
  ServerProcess server(data_dir_, flags);
  const std::string authority = authority_.certificate();
  EXPECT_TRUE(ListWith(server.address(), authority, good).ok());
  EXPECT_TRUE(ListWith(server.address(), authority, bad).ok());
  OpenBuild of_good(server.address(), authority, good);
  OpenBuild of_bad(server.address(), authority, bad);
  // The list is read again when it changes.
  ReplaceFile(revoked, authority_.Revoked({bad.certificate}));
  EXPECT_EQ(of_bad.WriteUntilItEnds().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(of_good.Write());
  const absl::Time until = absl::Now() + absl::Seconds(30);
  while (ListWith(server.address(), authority, bad).ok() && absl::Now() < until) continue;
  EXPECT_EQ(ListWith(server.address(), authority, bad).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(ListWith(server.address(), authority, good).ok());
  // The lists are valid for two days.
  const double left = MetricOf(server, "phimap_tls_crl_not_after_seconds") -
                      static_cast<double>(absl::ToUnixSeconds(absl::Now()));
  EXPECT_GT(left, 47 * 3600);
  EXPECT_LT(left, 49 * 3600);
  of_good.Cancel();
  server.process().Signal(SIGTERM);
  const std::string log = server.process().Wait().err;
  EXPECT_THAT(log, HasSubstr("certificate revoked: /CN=localhost sha256:"));
  EXPECT_THAT(log,
              HasSubstr("reason=certificate why=\"the TLS certificate of the client has expired"));
}

TEST_F(AccessTest, AUserOfTheUnixSocketIsACallerToo) {
  ReplaceFile(tokens_, absl::StrCat("nightly admin user:", getuid(), "\n"));
  const std::string socket = folder_.path() + "/socket";
  ServerProcess server(
      data_dir_, {"--listen=127.0.0.1:0", "--token_file=" + tokens_, "--unix_listen=" + socket,
                  "--unix_mode=0660", "--log_level=debug"});
  EXPECT_EQ(std::filesystem::status(socket).permissions(), std::filesystem::perms(0660));
  const auto list = [](const std::string& address) {
    grpc::ClientContext context;
    v1::ListMappingsResponse response;
    const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    return v1::MappingService::NewStub(channel)->ListMappings(&context, {}, &response);
  };
  EXPECT_TRUE(list("unix:" + socket).ok());
  EXPECT_EQ(list(server.address()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  server.process().Signal(SIGTERM);
  const std::string log = server.process().Wait().err;
  EXPECT_THAT(log, HasSubstr("caller=nightly"));
  EXPECT_THAT(log, HasSubstr(absl::StrCat("peer=\"unix:uid=", getuid(), "\"")));
}

// A stream that does not end by itself ends with its connection, once the grace is over.
TEST_F(AccessTest, AConnectionOfAnAgeEndsAfterItsGrace) {
  ServerProcess server(data_dir_,
                       {"--listen=127.0.0.1:0", "--max_connection_age_seconds=1",
                        "--max_connection_age_grace_seconds=1", "--lame_duck_seconds=1"});
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stub = v1::MappingService::NewStub(
      grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  const absl::Time began = absl::Now();
  const auto stream = stub->Build(&context);
  v1::BuildRequest request;
  request.mutable_spec()->set_name("letter");
  request.mutable_spec()->set_build_id("00000000-0000-4000-8000-000000000001");
  request.mutable_spec()->set_spec("f2(landmarks=5)");
  request.mutable_spec()->set_kernel("rbf(gamma=1)");
  EXPECT_TRUE(stream->Write(request));
  v1::BuildResponse event;
  while (stream->Read(&event)) continue;
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  // One second of age, one of notice and one of grace.
  EXPECT_GE(absl::Now() - began, absl::Seconds(2));
  EXPECT_LT(absl::Now() - began, absl::Seconds(30));
}

TEST_F(AccessTest, FlagsThatNeedEachOtherSaySo) {
  const struct {
    std::vector<std::string> flags;
    const char* says;
  } cases[] = {
      {{"--tls_certificate=" + certificate_}, "--tls_key"},
      {{"--tls_key=" + key_}, "--tls_certificate"},
      {{"--tls_client_ca=" + clients_}, "--tls_certificate"},
      {{"--tls_client_crl=" + clients_}, "--tls_client_ca"},
      {{"--unix_mode=0660"}, "--token_file"},
      {{"--unix_mode=0777"}, "0660"},
      {{"--client_certificate_role=owner"}, "reader"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> command = {PHIMAPD_BINARY, "--data_dir=" + data_dir_};
    command.insert(command.end(), c.flags.begin(), c.flags.end());
    const ProcessResult refused = RunProcess(command);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(c.says));
    EXPECT_FALSE(std::filesystem::exists(data_dir_));
  }
}

TEST_F(AccessTest, FilesThatCannotBeUsedAreNamedAtTheStart) {
  const struct {
    std::vector<std::string> flags;
    std::string says;
  } cases[] = {
      {{"--tls_certificate=" + certificate_, "--tls_key=" + certificate_}, certificate_},
      {{"--tls_certificate=" + certificate_, "--tls_key=" + key_ + ".missing"}, key_ + ".missing"},
      {{"--token_file=" + key_}, key_ + ": line 1"},
      {{"--tls_certificate=" + certificate_, "--tls_key=" + key_, "--tls_client_ca=" + clients_,
        "--tls_client_crl=" + clients_},
       "expected revocation lists in PEM"},
      {{"--tls_certificate=" + certificate_, "--tls_key=" + key_, "--tls_client_ca=" + clients_,
        "--tls_client_crl=" + expired_},
       "has expired"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.says);
    std::vector<std::string> command = {PHIMAPD_BINARY, "--data_dir=" + data_dir_,
                                        "--listen=127.0.0.1:0", "--http=127.0.0.1:0"};
    command.insert(command.end(), c.flags.begin(), c.flags.end());
    const ProcessResult refused = RunProcess(command);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace phimap::e2e
