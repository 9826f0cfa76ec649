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
#include "server/store/sqlite_store.h"
#include "tests/server/rpc/raw_call.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {
namespace {

constexpr char kService[] = "inference.GRPCInferenceService";

std::unique_ptr<Store> OpenStore(const std::string& path) {
  auto store = SqliteStore::Open({.data_dir = path}, PosixFileSystem());
  PHIMAP_CHECK(store.ok());
  return *std::move(store);
}

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

  TemporaryFolder folder_;
  const Logger logger_{LogLevel::kOff};
  Metrics metrics_;
  const std::unique_ptr<Store> store_ = OpenStore(folder_.path());
  TaskPool store_pool_{"store calls", 1, 16};
  TransformScheduler scheduler_{{}, metrics_.transform()};
  VersionRegistry registry_{{}, *store_, metrics_.registry(), logger_};
  const RpcLimits limits_;
  AnswerBudget answers_{limits_.answer_bytes, metrics_.transform(), scheduler_.room()};
  const TransformEnvironment environment_{registry_, scheduler_, answers_, limits_, logger_};
  std::atomic<bool> serving_{false};
  const AccessControl access_{nullptr, std::nullopt};
  InferenceService service_{environment_, *store_, store_pool_, serving_,
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
  inference::ModelReadyRequest request;
  request.set_name("letter");
  inference::ModelReadyResponse response;
  {
    grpc::ClientContext context;
    EXPECT_EQ(stub_->ModelReady(&context, request, &response).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
  (*listener_)->StopHealth();
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->ModelReady(&context, request, &response).ok());
  EXPECT_FALSE(response.ready());
}

}  // namespace
}  // namespace phimap::testing
