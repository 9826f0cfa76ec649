// Tests CheckHealth against gRPC's own health service, and against ports without a server.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

// A timeout that is longer than any answer takes. Tests in which no answer comes use a shorter one.
constexpr absl::Duration kPatience = absl::Minutes(1);

std::unique_ptr<Client> ConnectTo(int port) {
  return *Client::Connect(absl::StrCat("127.0.0.1:", port), {});
}

class ClientHealthTest : public ::testing::Test {
 protected:
  ClientHealthTest() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&some_service_);
    server_ = builder.BuildAndStart();
  }
  void SetServing(const std::string& service, bool serving) {
    server_->GetHealthCheckService()->SetServingStatus(service, serving);
  }

  int port_ = 0;
  // gRPC's server needs at least one service besides its health service.
  v1::MappingService::Service some_service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ClientHealthTest, TellsWhatTheServerSaysOfItselfAndOfEachService) {
  const std::unique_ptr<Client> client = ConnectTo(port_);
  SetServing("", true);
  SetServing("a.Service", false);
  EXPECT_EQ(client->CheckHealth("", kPatience).value(), true);
  EXPECT_EQ(client->CheckHealth("a.Service", kPatience).value(), false);
  SetServing("", false);
  SetServing("a.Service", true);
  EXPECT_EQ(client->CheckHealth("", kPatience).value(), false);
  EXPECT_EQ(client->CheckHealth("a.Service", kPatience).value(), true);
}

TEST_F(ClientHealthTest, AnUnknownServiceIsNotFoundAndNamed) {
  const auto health = ConnectTo(port_)->CheckHealth("b.Service", kPatience);
  EXPECT_THAT(health.status(), testing::IsError(StatusCode::kNotFound, _, _,
                                                "the server has no service 'b.Service'"));
}

TEST_F(ClientHealthTest, AStoppedServerIsUnavailable) {
  server_->Shutdown();
  server_.reset();
  const auto health = ConnectTo(port_)->CheckHealth("", kPatience);
  EXPECT_EQ(health.status().code(), StatusCode::kUnavailable) << health.status();
}

// The operating system accepts the connection, but nobody ever reads from it, just as with a
// process that hangs.
TEST(SilentServerTest, ASilentServerIsOutOfTime) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const auto health = ConnectTo(ntohs(address.sin_port))->CheckHealth("", absl::Milliseconds(200));
  EXPECT_EQ(health.status().code(), StatusCode::kDeadlineExceeded) << health.status();
  close(listener);
}

}  // namespace
}  // namespace phimap::client
