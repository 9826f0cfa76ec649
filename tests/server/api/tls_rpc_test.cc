// Tests the API over TLS: which clients are let in, and what happens when certificates change while
// the server runs.
#include <sys/stat.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class TlsRpcTest : public ServerFixture {
 protected:
  TlsRpcTest() {
    options_.tls.certificate = files_.path() + "/server.pem";
    options_.tls.key = files_.path() + "/server.key";
    Install(authority_.Issue());
  }

  void Install(const KeyPair& pair) {
    ReplaceFile(options_.tls.certificate, pair.certificate);
    ReplaceFile(options_.tls.key, pair.key);
  }
  void AskForCertificatesOf(const CertificateAuthority& authority) {
    options_.tls.client_ca = files_.path() + "/clients.pem";
    ReplaceFile(options_.tls.client_ca, authority.certificate());
  }

  // Returns a channel that shares its connection with no other channel.
  std::shared_ptr<grpc::Channel> Connect(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      const std::string& address = "") {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address.empty() ? server_->grpc_address() : address,
                                     credentials, arguments);
  }
  static std::shared_ptr<grpc::ChannelCredentials> Trusting(const CertificateAuthority& authority,
                                                            const KeyPair& own = {}) {
    return grpc::SslCredentials({.pem_root_certs = authority.certificate(),
                                 .pem_private_key = own.key,
                                 .pem_cert_chain = own.certificate});
  }
  // Calls ListMappings, which a caller with the role reader may call.
  static grpc::Status List(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    v1::ListMappingsResponse response;
    return v1::MappingService::NewStub(channel)->ListMappings(&context, {}, &response);
  }
  // Calls CancelBuild, which a caller with the role builder may call. The build does not exist.
  static grpc::Status Cancel(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    v1::CancelBuildRequest request;
    request.set_name("letter");
    request.set_build_id("00000000-0000-4000-8000-000000000001");
    v1::BuildJob response;
    return v1::MappingService::NewStub(channel)->CancelBuild(&context, request, &response);
  }

  TemporaryFolder files_;
  CertificateAuthority authority_{"phimap test authority"};
  CertificateAuthority stranger_{"another authority"};
};

TEST_F(TlsRpcTest, OnlyAClientThatTrustsTheCertificateIsServedAndNothingGoesInTheClear) {
  Start();
  EXPECT_THAT(List(Connect(Trusting(authority_))), IsOk());
  EXPECT_EQ(List(Connect(Trusting(stranger_))).error_code(), Code::UNAVAILABLE);
  EXPECT_EQ(List(Connect(grpc::InsecureChannelCredentials())).error_code(), Code::UNAVAILABLE);
}

TEST_F(TlsRpcTest, OnlyAClientWithACertificateOfTheAuthorityIsLetIn) {
  AskForCertificatesOf(authority_);
  Start();
  EXPECT_THAT(List(Connect(Trusting(authority_, authority_.Issue()))), IsOk());
  EXPECT_EQ(List(Connect(Trusting(authority_))).error_code(), Code::UNAVAILABLE);
  EXPECT_EQ(List(Connect(Trusting(authority_, stranger_.Issue()))).error_code(), Code::UNAVAILABLE);
  EXPECT_EQ(List(Connect(Trusting(authority_, authority_.Issue({.days = -1})))).error_code(),
            Code::UNAVAILABLE);
}

TEST_F(TlsRpcTest, ACertificateGivesTheRoleThatTheOperatorChoseAndTheSocketEveryRole) {
  AskForCertificatesOf(authority_);
  options_.unix_listen = files_.path() + "/phimapd.sock";
  const KeyPair client = authority_.Issue({.name = "a client"});
  Start();
  EXPECT_TRUE(List(Connect(Trusting(authority_, client))).ok());
  const grpc::Status refused = Cancel(Connect(Trusting(authority_, client)));
  EXPECT_EQ(refused.error_code(), Code::PERMISSION_DENIED);
  EXPECT_EQ(FactsOf(refused).metadata.at("actual"), "reader");
  EXPECT_EQ(Cancel(Connect(grpc::InsecureChannelCredentials(),
                           absl::StrCat("unix:", options_.unix_listen)))
                .error_code(),
            Code::NOT_FOUND);
  Stop();
  options_.client_certificate_role = Role::kBuilder;
  Start();
  EXPECT_EQ(Cancel(Connect(Trusting(authority_, client))).error_code(), Code::NOT_FOUND);
}

TEST_F(TlsRpcTest, ATokenDecidesWhereACertificateLetsIn) {
  AskForCertificatesOf(authority_);
  options_.client_certificate_role = Role::kAdmin;
  options_.token_file = files_.path() + "/tokens";
  ReplaceFile(options_.token_file, "reader reader-token-0123456789\n");
  Start();
  const auto channel = Connect(Trusting(authority_, authority_.Issue()));
  EXPECT_EQ(List(channel).error_code(), Code::UNAUTHENTICATED);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer reader-token-0123456789");
  v1::ListMappingsResponse response;
  EXPECT_TRUE(v1::MappingService::NewStub(channel)->ListMappings(&context, {}, &response).ok());
}

TEST_F(TlsRpcTest, ANewCertificateIsUsedWithoutARestartAndOldConnectionsGoOn) {
  Start();
  const auto before = Connect(Trusting(authority_));
  ASSERT_TRUE(List(before).ok());
  Install(stranger_.Issue());
  while (!List(Connect(Trusting(stranger_))).ok()) std::this_thread::yield();
  EXPECT_EQ(List(Connect(Trusting(authority_))).error_code(), Code::UNAVAILABLE);
  EXPECT_TRUE(List(before).ok());
}

TEST_F(TlsRpcTest, ANewClientAuthorityIsUsedWithoutARestart) {
  AskForCertificatesOf(authority_);
  Start();
  const KeyPair client = stranger_.Issue();
  EXPECT_FALSE(List(Connect(Trusting(authority_, client))).ok());
  ReplaceFile(options_.tls.client_ca, stranger_.certificate());
  while (!List(Connect(Trusting(authority_, client))).ok()) std::this_thread::yield();
  EXPECT_FALSE(List(Connect(Trusting(authority_, authority_.Issue()))).ok());
}

TEST_F(TlsRpcTest, AWrongPairIsLoggedAndNotUsedAndTheNextOneIs) {
  Start();
  const auto before = Connect(Trusting(authority_));
  ASSERT_TRUE(List(before).ok());
  ReplaceFile(options_.tls.key, stranger_.Issue().key);
  while (!absl::StrContains(LoggedErrors(), "tls_files_wrong")) std::this_thread::yield();
  EXPECT_TRUE(List(before).ok());
  EXPECT_TRUE(List(Connect(Trusting(authority_))).ok());
  Install(stranger_.Issue());
  while (!List(Connect(Trusting(stranger_))).ok()) std::this_thread::yield();
}

TEST_F(TlsRpcTest, FilesThatCannotBeUsedKeepTheServerFromStarting) {
  ReplaceFile(options_.tls.key, stranger_.Issue().key);
  auto store = SqliteStore::Open({.data_dir = options_.data_dir}, PosixFileSystem()).value();
  EXPECT_THAT(Server::Start(options_, std::move(store), logger_).status(),
              IsError(StatusCode::kFailedPrecondition, _, _, HasSubstr(options_.tls.key)));
}

}  // namespace
}  // namespace phimap::testing
