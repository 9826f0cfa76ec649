// Tests a thousand calls that are open at the same time.
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "tests/e2e/server_process.h"

namespace phimap::e2e {
namespace {

constexpr int kCalls = 1000;
// An allowance for threads that the server starts and ends meanwhile.
constexpr int kFewThreads = 8;
// The number of reflection calls that the server serves at once.
constexpr int kSynchronousThreads = 16;

using StreamCall = grpc::ClientReaderWriter<v1::TransformRequest, v1::TransformResponse>;

class ConcurrentCallsTest : public ::testing::Test {
 protected:
  ConcurrentCallsTest() : server_(folder_.path()) {
    GeneratedRows rows(200, 4, 3);
    PHIMAP_CHECK(
        server_.Connect()
            ->Build({.name = "letters", .spec = "f2(landmarks=20)", .kernel = "rbf(gamma=scale)"},
                    rows)
            .ok());
    for (int i = 0; i < 4; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      channels_.push_back(grpc::CreateCustomChannel(server_.address(),
                                                    grpc::InsecureChannelCredentials(), arguments));
    }
  }

  static v1::Examples OneRow() {
    v1::Examples examples;
    examples.mutable_dense()->set_rows(1);
    examples.mutable_dense()->set_columns(4);
    examples.mutable_dense()->set_float32_le(std::string(16, '\0'));
    return examples;
  }
  absl::Status TransformOnce() {
    const std::vector<float> row = {0.1f, 0.2f, 0.3f, 0.4f};
    return server_.Connect()
        ->Transform("letters", client::MakeRowBlock(absl::MakeConstSpan(row), 4),
                    {.timeout = absl::Seconds(60)})
        .status();
  }
  std::shared_ptr<grpc::Channel> ChannelOf(int call) { return channels_[call % channels_.size()]; }

  TemporaryFolder folder_;
  ServerProcess server_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
};

TEST_F(ConcurrentCallsTest, AThousandUnaryCallsAreAllAnsweredOrRefusedWithADelay) {
  const int threads = server_.Threads();
  struct Call {
    grpc::ClientContext context;
    v1::TransformRequest request;
    v1::TransformResponse response;
  };
  std::vector<Call> calls(kCalls);
  std::atomic<int> answered{0};
  std::atomic<int> refused{0};
  std::atomic<int> failed{0};
  for (int i = 0; i < kCalls; ++i) {
    calls[i].request.set_reference("letters");
    *calls[i].request.mutable_examples() = OneRow();
    const auto stub = v1::TransformService::NewStub(ChannelOf(i));
    stub->async()->Transform(
        &calls[i].context, &calls[i].request, &calls[i].response, [&](const grpc::Status& status) {
          if (status.ok()) {
            ++answered;
          } else if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
            ++refused;
          } else {
            ++failed;
          }
        });
  }
  while (answered + refused + failed < kCalls) std::this_thread::yield();
  std::cout << answered << " answered, " << refused << " refused\n";
  EXPECT_EQ(failed, 0);
  EXPECT_GT(answered, 0);
  EXPECT_LE(server_.Threads(), threads + kFewThreads);
  EXPECT_TRUE(TransformOnce().ok());
}

TEST_F(ConcurrentCallsTest, AThousandStreamsStayOpenWithoutAThreadEach) {
  const int threads = server_.Threads();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<StreamCall>> streams;
  v1::TransformRequest request;
  *request.mutable_examples() = OneRow();
  v1::TransformResponse response;
  for (int i = 0; i < kCalls; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(
        v1::TransformService::NewStub(ChannelOf(i))->TransformStream(contexts.back().get()));
    request.set_reference("letters");
    ASSERT_TRUE(streams.back()->Write(request));
    ASSERT_TRUE(streams.back()->Read(&response)) << i;
  }
  // All thousand calls are open at this point.
  EXPECT_LE(server_.Threads(), threads + kFewThreads);
  EXPECT_TRUE(TransformOnce().ok());
  request.clear_reference();
  for (const auto& stream : streams) ASSERT_TRUE(stream->Write(request));
  for (const auto& stream : streams) {
    ASSERT_TRUE(stream->Read(&response));
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

// gRPC's reflection is a synchronous service, which takes a thread for each of its open streams.
TEST_F(ConcurrentCallsTest, AThousandStreamsOfReflectionDoNotTakeAThousandThreads) {
  const int threads = server_.Threads();
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  };
  std::vector<Call> calls(kCalls);
  grpc::CompletionQueue queue;
  for (int i = 0; i < kCalls; ++i) {
    grpc::GenericStub stub(ChannelOf(i));
    calls[i].stream =
        stub.PrepareCall(&calls[i].context,
                         "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    calls[i].stream->StartCall(nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    EXPECT_LE(server_.Threads(), threads + kSynchronousThreads + kFewThreads);
  }
  EXPECT_TRUE(TransformOnce().ok());
  for (Call& call : calls) call.context.TryCancel();
  for (Call& call : calls) {
    grpc::Status status;
    call.stream->Finish(&status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  }
}

}  // namespace
}  // namespace phimap::e2e
