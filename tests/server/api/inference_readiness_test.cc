// Tests that readiness in the inference protocol agrees with the health checks.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/status/check.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/api_listener.h"
#include "server/inference/inference_service.h"
#include "server/rpc/standard_services.h"
#include "tests/server/api/raw_call.h"
#include "tests/server/registry/registry_fixture.h"

namespace phimap::testing {
namespace {

constexpr char kService[] = "inference.GRPCInferenceService";

// Runs the inference and health services and their listener, without the rest of the server. This
// fixture can report that it is not serving and still answer calls. A real server that stops closes
// its connections at that moment.
class InferenceReadinessTest : public ::testing::Test {
 protected:
  InferenceReadinessTest() {
    AddInferenceService(inference_, dispatcher_);
    AddHealthService(health_, dispatcher_);
    SetServing(true);
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    auto api = ApiListener::Listen(
                   options, dispatcher_, [](EventLoop&) {}, metrics_.connections(), logger_)
                   .value();
    api_ = std::move(api);
    channel_ = grpc::CreateChannel(api_->address(), grpc::InsecureChannelCredentials());
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }
  ~InferenceReadinessTest() override {
    const auto now = std::chrono::steady_clock::now();
    api_->Shutdown(now, now, [this] { health_.EndWatches(); });
    scheduler_.Drain();
  }

  // Sets the state the way the server does when it starts and when it stops.
  void SetServing(bool serving) {
    health_.SetServing(serving);
    serving_ = serving;
  }
  bool ServerReady() {
    inference::ServerReadyResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->ServerReady(&context, {}, &response).ok());
    return response.ready();
  }
  bool ModelReady(const std::string& name) {
    inference::ModelReadyRequest request;
    request.set_name(name);
    inference::ModelReadyResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->ModelReady(&context, request, &response).ok());
    return response.ready();
  }

  const Logger logger_{LogLevel::kOff};
  Metrics metrics_;
  MemoryStore store_;
  TaskPool store_pool_{"store calls", 1, 16};
  TaskPool parsing_{"messages to parse", 1, 16};
  const AccessControl access_{/*tokens=*/nullptr, /*certificate_role=*/std::nullopt};
  RequestMemory memory_{int64_t{1} << 20, /*gauge=*/nullptr};
  CallerShares callers_{/*max_calls=*/16};
  const CallEnvironment calls_{access_, memory_, callers_, parsing_, int64_t{1} << 20, logger_};
  Dispatcher dispatcher_{calls_, metrics_};
  TransformScheduler scheduler_{{}, metrics_.transform()};
  VersionRegistry registry_{{}, store_, metrics_.registry(), logger_};
  RowServer rows_{scheduler_, metrics_.transform()};
  const RowCallEnvironment row_calls_{registry_, rows_};
  std::atomic<bool> serving_{false};
  HealthStatus health_{{kService}};
  const absl::Duration idle_limit_ = absl::Minutes(5);
  const InferenceEnvironment inference_{row_calls_,  store_,   store_pool_,
                                        idle_limit_, serving_, "1.2.3"};
  std::unique_ptr<ApiListener> api_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

TEST_F(InferenceReadinessTest, ServerReadyIsWhatHealthSaysAndLiveItStays) {
  EXPECT_EQ(HealthOf(channel_, kService), 1);
  EXPECT_TRUE(ServerReady());
  SetServing(false);
  EXPECT_EQ(HealthOf(channel_, kService), 2);
  EXPECT_FALSE(ServerReady());
  inference::ServerLiveResponse live;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->ServerLive(&context, {}, &live).ok());
  EXPECT_TRUE(live.live());
}

// While a server drains, it answers that a model is not ready without looking for the model.
TEST_F(InferenceReadinessTest, NoModelIsReadyWhileTheServerIsNot) {
  store_.Put("letter", 1, SmallArtifact());
  store_.Put("digit", 1, SmallArtifact());
  EXPECT_TRUE(ModelReady("letter"));
  SetServing(false);
  EXPECT_FALSE(ModelReady("letter"));
  EXPECT_FALSE(ModelReady("digit"));
  EXPECT_EQ(store_.reads(), 1);
}

}  // namespace
}  // namespace phimap::testing
