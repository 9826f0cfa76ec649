// Tests the server as a whole: limits of the listener, health, reflection, metrics and draining.
#include <cstring>
#include <thread>

#include "server/sqlite/sqlite_store.h"
#include "tests/server/rpc/raw_call.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using Code = grpc::StatusCode;

class ServerRpcTest : public ServerFixture {};

TEST_F(ServerRpcTest, HealthKnowsEveryService) {
  Start();
  for (const char* service : {"", "phimap.v1.MappingService", "phimap.v1.TransformService",
                              "phimap.v1.EvaluationService", "inference.GRPCInferenceService"}) {
    EXPECT_EQ(HealthOf(channel_, service), 1) << service;
  }
  EXPECT_EQ(HealthOf(channel_, "phimap.v1.Nothing"), -static_cast<int>(Code::NOT_FOUND));
}

TEST_F(ServerRpcTest, ReflectionListsTheServices) {
  Start();
  EXPECT_THAT(ListServices(channel_),
              IsSupersetOf({"phimap.v1.MappingService", "phimap.v1.TransformService",
                            "phimap.v1.EvaluationService", "inference.GRPCInferenceService"}));
}

TEST_F(ServerRpcTest, AnUnknownMethodIsUnimplemented) {
  Start();
  EXPECT_EQ(CallRaw(channel_, "/phimap.v1.MappingService/Nothing", {""}).status.error_code(),
            Code::UNIMPLEMENTED);
  // The bytes cannot be parsed. The code of the error depends on the library.
  EXPECT_FALSE(
      CallRaw(channel_, "/phimap.v1.TransformService/Transform", {"\xff\xff\xff"}).status.ok());
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
  EXPECT_THAT(before,
              HasSubstr("grpc_server_handled_total{grpc_code=\"ResourceExhausted\","
                        "grpc_method=\"Transform\",grpc_service=\"phimap.v1.TransformService\","
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
  // Once a call is refused or cannot connect, the shutdown has begun.
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
  EXPECT_TRUE(Build(Spec()).ok());  // attaches to the finished build
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
