// The server as a whole: limits of the listener, health, reflection, metrics, draining.
#include <cstring>
#include <thread>

#include "grpcpp/generic/generic_stub.h"
#include "server/store/sqlite_store.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Code = grpc::StatusCode;

class ServerRpcTest : public ServerFixture {
 protected:
  // A unary call of any method with raw bytes.
  grpc::Status Call(const std::string& method, const std::string& request, std::string* response) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const grpc::ByteBuffer message(&slice, 1);
    const auto call = stub.PrepareUnaryCall(&context, method, message, &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    grpc::Slice bytes;
    if (status.ok() && answer.DumpToSingleSlice(&bytes).ok()) {
      *response = std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
    }
    return status;
  }

  // grpc.health.v1.Health/Check of a service: SERVING is 1, NOT_SERVING 2.
  int Health(const std::string& service) {
    // HealthCheckRequest{1: service}, HealthCheckResponse{1: status}; the library keeps the
    // messages to itself.
    const std::string request =
        service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
    std::string response;
    const grpc::Status status = Call("/grpc.health.v1.Health/Check", request, &response);
    if (!status.ok()) return -static_cast<int>(status.error_code());
    return response.size() == 2 ? response[1] : 0;
  }
};

TEST_F(ServerRpcTest, HealthKnowsEveryService) {
  Start();
  for (const char* service : {"", "phimap.v1.MappingService", "phimap.v1.TransformService",
                              "phimap.v1.EvaluationService"}) {
    EXPECT_EQ(Health(service), 1) << service;
  }
  EXPECT_EQ(Health("phimap.v1.Nothing"), -static_cast<int>(Code::NOT_FOUND));
}

TEST_F(ServerRpcTest, ReflectionListsTheServices) {
  Start();
  grpc::GenericStub stub(channel_);
  // ServerReflectionRequest{7: list_services = "*"}.
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  const grpc::Slice slice(std::string("\x3a\x01*"));
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  ASSERT_TRUE(next());
  grpc::Slice bytes;
  ASSERT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  const std::string text(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  EXPECT_THAT(text, HasSubstr("phimap.v1.MappingService"));
  EXPECT_THAT(text, HasSubstr("phimap.v1.TransformService"));
  call->WritesDone(nullptr);
  ASSERT_TRUE(next());
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  EXPECT_TRUE(status.ok());
}

TEST_F(ServerRpcTest, AnUnknownMethodIsUnimplemented) {
  Start();
  std::string response;
  EXPECT_EQ(Call("/phimap.v1.MappingService/Nothing", "", &response).error_code(),
            Code::UNIMPLEMENTED);
  // Not a message; which code it is, is up to the library.
  EXPECT_FALSE(Call("/phimap.v1.TransformService/Transform", "\xff\xff\xff", &response).ok());
}

TEST_F(ServerRpcTest, ACompressedRequestIsRefusedUnread) {
  Start();
  MustBuild();
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::TransformRequest request;
    request.set_reference("letter");
    *request.mutable_examples() = UniformExamples(100, 3);
    request.mutable_examples()->mutable_dense()->set_float32_le(std::string(1200, '\0'));
    v1::TransformResponse response;
    EXPECT_EQ(transforms_->Transform(&context, request, &response).error_code(),
              Code::UNIMPLEMENTED);
  }
}

TEST_F(ServerRpcTest, MetricsCountFromZero) {
  options_.http = "127.0.0.1:0";
  Start();
  const std::string before = Scrape();
  EXPECT_THAT(before, HasSubstr("grpc_server_handled_total{grpc_code=\"ResourceExhausted\","
                                "grpc_method=\"Transform\","
                                "grpc_service=\"phimap.v1.TransformService\","
                                "grpc_type=\"unary\"} 0"));
  EXPECT_THAT(before, HasSubstr("grpc_method=\"Build\""));
  EXPECT_THAT(before, HasSubstr("phimap_compute_threads 2"));
  MustBuild();
  v1::TransformRequest request;
  request.set_reference("letter");
  *request.mutable_examples() = UniformExamples(10, 3);
  v1::TransformResponse response;
  ASSERT_TRUE(Transform(request, &response).ok());
  request.set_reference("unknown");
  EXPECT_FALSE(Transform(request, &response).ok());
  const std::string after = Scrape();
  const std::string transform =
      "grpc_method=\"Transform\",grpc_service=\"phimap.v1.TransformService\",grpc_type=\"unary\"} ";
  EXPECT_THAT(after, HasSubstr("grpc_server_started_total{" + transform + "2"));
  EXPECT_THAT(after, HasSubstr("{grpc_code=\"OK\"," + transform + "1"));
  EXPECT_THAT(after, HasSubstr("{grpc_code=\"NotFound\"," + transform + "1"));
  EXPECT_THAT(after, HasSubstr("phimap_transform_rows_total 10"));
  EXPECT_THAT(after, HasSubstr("phimap_build_rows_total 40"));
  EXPECT_THAT(after, HasSubstr("phimap_live_versions 1"));
  EXPECT_THAT(after, HasSubstr("phimap_builds_ended_total{code=\"OK\"} 1"));
  EXPECT_THAT(after, HasSubstr("phimap_builds{state=\"receiving\"} 0"));
}

TEST_F(ServerRpcTest, ASecondServerOnThePortFails) {
  Start();
  TemporaryFolder other;
  ServerOptions options = options_;
  options.listen = server_->grpc_address();
  auto store = SqliteStore::Open({.data_dir = other.path()}, PosixFileSystem());
  ASSERT_TRUE(store.ok());
  const auto second = Server::Start(options, *std::move(store), logger_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(options.listen));
}

TEST_F(ServerRpcTest, DrainFinishesTheBuildThatRunsAndRefusesNewCalls) {
  Start();
  BuildStream stream(*mappings_);
  stream.Send(Spec());
  ASSERT_TRUE(stream.AwaitAccepted().has_value());
  build_gate_.Close();
  stream.Send(UniformExamples(40, 3));
  stream.SendFinish(40);
  build_gate_.AwaitWaiting();
  std::thread drain([&] { server_->Shutdown(absl::Seconds(60)); });
  // Refused, or not even connected: until then the shutdown has not begun.
  while (true) {
    grpc::ClientContext context;
    v1::ListBuildsResponse builds;
    if (!mappings_->ListBuilds(&context, {}, &builds).ok()) break;
  }
  build_gate_.Open();
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(stream.version().has_value());
  drain.join();
  server_.reset();
  Start();
  EXPECT_TRUE(Build(Spec()).ok());  // attaches
}

TEST_F(ServerRpcTest, WhatDoesNotFinishInTheDrainTimeIsCancelledAndMayBeStreamedAgain) {
  Start();
  BuildStream receiving(*mappings_);
  receiving.Send(Spec());
  ASSERT_TRUE(receiving.AwaitAccepted().has_value());
  grpc::ClientContext idle_context;
  MustBuild("digit");
  const auto idle = transforms_->TransformStream(&idle_context);
  server_->Shutdown(absl::ZeroDuration());
  EXPECT_EQ(receiving.Finish().error_code(), Code::UNAVAILABLE);
  EXPECT_FALSE(idle->Finish().ok());
  server_.reset();
  Start();
  EXPECT_TRUE(Build(Spec()).ok());
}

}  // namespace
}  // namespace phimap::testing
