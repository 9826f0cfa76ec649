// What the protocol says of the server's readiness is what health checks are told.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/grpc_listener.h"
#include "server/rpc/inference_service.h"
#include "tests/server/registry/registry_fixture.h"
#include "tests/server/rpc/raw_call.h"

namespace phimap::testing {
namespace {

constexpr char kService[] = "inference.GRPCInferenceService";

// The service and its listener, without the rest of the server: what is between StopHealth and
// Shutdown takes no time there.
class InferenceReadinessTest : public ::testing::Test {
 protected:
  InferenceReadinessTest() {
    PHIMAP_CHECK(listener_.ok());
    channel_ = grpc::CreateChannel((*listener_)->address(), grpc::InsecureChannelCredentials());
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }
  ~InferenceReadinessTest() override {
    (*listener_)->Shutdown(std::chrono::system_clock::now());
    scheduler_.Drain();
  }

  static ServerOptions Options() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    return options;
  }
  bool ServerReady() {
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    EXPECT_TRUE(stub_->ServerReady(&context, {}, &response).ok());
    return response.ready();
  }

  const Logger logger_{LogLevel::kOff};
  Metrics metrics_;
  bool ModelReady(const std::string& name) {
    inference::ModelReadyRequest request;
    request.set_name(name);
    grpc::ClientContext context;
    inference::ModelReadyResponse response;
    EXPECT_TRUE(stub_->ModelReady(&context, request, &response).ok());
    return response.ready();
  }

  MemoryStore store_;
  TaskPool store_pool_{"store calls", 1, 16};
  TransformScheduler scheduler_{{}, metrics_.transform()};
  VersionRegistry registry_{{}, store_, metrics_.registry(), logger_};
  const RpcLimits limits_;
  AnswerBudget answers_{limits_.answer_bytes, metrics_.transform(), scheduler_.room()};
  const TransformEnvironment environment_{registry_, scheduler_, answers_, limits_, logger_};
  std::atomic<bool> serving_{false};
  const AccessControl access_{nullptr, std::nullopt};
  InferenceService service_{environment_, store_,  store_pool_, serving_,
                            "1.2.3",      access_, metrics_};
  const absl::StatusOr<std::unique_ptr<GrpcListener>> listener_ = GrpcListener::Listen(
      Options(), {{&service_, kService}}, serving_, metrics_.connections(), logger_);
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

TEST_F(InferenceReadinessTest, ServerReadyIsWhatHealthSaysAndLiveItStays) {
  EXPECT_EQ(HealthOf(channel_, kService), 1);
  EXPECT_TRUE(ServerReady());
  (*listener_)->StopHealth();
  EXPECT_EQ(HealthOf(channel_, kService), 2);
  EXPECT_FALSE(ServerReady());
  grpc::ClientContext context;
  inference::ServerLiveResponse live;
  ASSERT_TRUE(stub_->ServerLive(&context, {}, &live).ok());
  EXPECT_TRUE(live.live());
}

// While it drains it answers without looking for the model; before, it looks.
TEST_F(InferenceReadinessTest, NoModelIsReadyWhileTheServerIsNot) {
  store_.Put("letter", 1, SmallArtifact());
  store_.Put("digit", 1, SmallArtifact());
  EXPECT_TRUE(ModelReady("letter"));
  (*listener_)->StopHealth();
  EXPECT_FALSE(ModelReady("letter"));
  EXPECT_FALSE(ModelReady("digit"));
  EXPECT_EQ(store_.reads(), 1);
}

}  // namespace
}  // namespace phimap::testing
