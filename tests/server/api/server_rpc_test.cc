// Tests the server as a whole: limits of the listener, health, reflection, metrics and draining.
#include <cstring>
#include <thread>

#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using ::testing::IsSupersetOf;

class ServerRpcTest : public ServerFixture {};

TEST_F(ServerRpcTest, HealthKnowsEveryService) {
  Start();
  for (const char* service : {"", "phimap.v1.MappingService", "phimap.v1.TransformService",
                              "phimap.v1.LearningService", "inference.GRPCInferenceService"}) {
    EXPECT_EQ(HealthOf(channel_, service), 1) << service;
  }
  EXPECT_EQ(HealthOf(channel_, "phimap.v1.Nothing"), -static_cast<int>(Code::NOT_FOUND));
}

TEST_F(ServerRpcTest, ReflectionListsTheServices) {
  Start();
  EXPECT_THAT(ListServices(channel_),
              IsSupersetOf({"phimap.v1.MappingService", "phimap.v1.TransformService",
                            "phimap.v1.LearningService", "inference.GRPCInferenceService"}));
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
  v1::TransformRequest request = TransformOf("letter", UniformExamples(10, 3));
  v1::TransformResponse response = Mapped(request);
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
  auto store = SqliteStore::Open({.data_dir = other.path()}, PosixFileSystem()).value();
  const auto second = Server::Start(options, std::move(store), logger_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status(),
              IsError(StatusCode::kFailedPrecondition, _, _, HasSubstr(options.listen)));
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
    v1::ListBuildsResponse builds;
    if (!mappings_->ListBuilds(NewContext(), {}, &builds).ok()) break;
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
