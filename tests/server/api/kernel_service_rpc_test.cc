// Tests builds and transforms with kernels that a user's own service computes, and how they end if
// the service misbehaves.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/kernel_server.h"
#include "gtest/gtest.h"
#include "tests/server/api/server_fixture.h"
#include "tests/server/support/scripted_kernel.h"

namespace phimap::testing {
namespace {

constexpr char kService[] = "service(endpoint=here, kernel=rbf)";
constexpr int kRows = 200;
constexpr int kColumns = 3;

class KernelServiceRpcTest : public ServerFixture {
 protected:
  KernelServiceRpcTest() { options_.kernel_service_seconds = 60; }
  ~KernelServiceRpcTest() override {
    hang_.Open();
    Stop();
  }

  void StartWith(const std::string& address) {
    options_.kernel_services = {{.name = "here", .target = address, .tls = false}};
    Start();
  }

  v1::BuildSpec SpecOf(const std::string& mapping, const std::string& text,
                       const std::string& kernel = kService) {
    v1::BuildSpec spec =
        Spec(mapping, text, absl::StrCat("00000000-0000-4000-8000-000000000", next_id_++));
    spec.set_kernel(kernel);
    return spec;
  }
  grpc::Status BuildOf(const std::string& text, const std::string& kernel = kService,
                       const std::string& mapping = "letter") {
    return Build(SpecOf(mapping, text, kernel), kRows);
  }
  v1::TransformRequest RequestFor(const std::string& mapping, int rows = 7) {
    return TransformOf(mapping, UniformExamples(rows, kColumns, /*seed=*/9));
  }
  grpc::Status AskFor(v1::TransformResponse* response = nullptr,
                      const std::string& mapping = "letter") {
    v1::TransformResponse ignored;
    return Transform(RequestFor(mapping), response != nullptr ? response : &ignored);
  }

  Gate hang_;
};

TEST_F(KernelServiceRpcTest, AStreamIsMappedInOrder) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)").ok());
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(stream->Write(
        TransformOf(i == 0 ? "letter" : "", UniformExamples(1 + i % 3, kColumns, i + 1))));
  }
  stream->WritesDone();
  v1::TransformResponse response;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(stream->Read(&response));
    v1::TransformResponse expected;
    const v1::Examples alone = UniformExamples(1 + i % 3, kColumns, i + 1);
    ASSERT_TRUE(Transform(TransformOf("letter", alone), &expected).ok());
    EXPECT_EQ(response.features().SerializeAsString(), expected.features().SerializeAsString());
  }
  EXPECT_TRUE(stream->Finish().ok());
}

void SetNumber(v1::ComputeBlockResponse& response, size_t index, double value) {
  Put(value, static_cast<int64_t>(index), response.mutable_block()->mutable_float64_le());
}

struct Lie {
  const char* what;
  const char* reason;
  const char* words;
  std::function<void(v1::ComputeBlockResponse&)> change;
  grpc::Status status = grpc::Status::OK;
};

const Lie kLies[] = {
    {"another number of rows", "KERNEL_SERVICE_ANSWER_INVALID", "expected",
     [](auto& r) { r.mutable_block()->set_rows(r.block().rows() + 1); }},
    {"another number of columns", "KERNEL_SERVICE_ANSWER_INVALID", "expected",
     [](auto& r) { r.mutable_block()->set_columns(1); }},
    {"fewer bytes than it says", "KERNEL_SERVICE_ANSWER_INVALID", "bytes of values",
     [](auto& r) { r.mutable_block()->mutable_float64_le()->pop_back(); }},
    {"no block", "KERNEL_SERVICE_ANSWER_INVALID", "0 × 0", [](auto& r) { r.Clear(); }},
    {"no values", "KERNEL_SERVICE_ANSWER_INVALID", "no values",
     [](auto& r) { r.mutable_block()->clear_values(); }},
    {"NaN", "KERNEL_SERVICE_ANSWER_INVALID", "nan in row 0, column 1",
     [](auto& r) { SetNumber(r, 1, std::numeric_limits<double>::quiet_NaN()); }},
    {"an infinity", "KERNEL_SERVICE_ANSWER_INVALID", "inf in row 0, column 0",
     [](auto& r) { SetNumber(r, 0, std::numeric_limits<double>::infinity()); }},
    {"an error", "KERNEL_SERVICE_FAILED", "INTERNAL: it broke", [](auto&) {},
     grpc::Status(Code::INTERNAL, "it broke")},
    {"NOT_FOUND whatever it is sent", "KERNEL_SERVICE_FAILED", "NOT_FOUND", [](auto&) {},
     grpc::Status(Code::NOT_FOUND, "what?")},
    {"an answer beyond the limit", "KERNEL_SERVICE_FAILED", "RESOURCE_EXHAUSTED",
     [](auto& r) { r.mutable_block()->mutable_float64_le()->resize(2 << 20); }},
};

TEST_F(KernelServiceRpcTest, ALieHasItsErrorInTransformAndBuildAndTheServerServesOn) {
  options_.max_message_bytes = 1 << 20;
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)").ok());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)", "rbf(gamma=0.2)", "built-in").ok());
  for (const Lie& lie : kLies) {
    SCOPED_TRACE(lie.what);
    kernel.Say([&lie](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse& response) {
      lie.change(response);
      return lie.status;
    });
    for (const bool building : {false, true}) {
      const grpc::Status status = building ? BuildOf("f2(landmarks=10)") : AskFor();
      EXPECT_THAT(status, IsError(Code::FAILED_PRECONDITION, lie.reason, _, HasSubstr(lie.words)));
      ExpectMetadata(status, "service=here; kernel=rbf");
    }
    EXPECT_TRUE(AskFor(nullptr, "built-in").ok());
    kernel.Say(nullptr);
    EXPECT_TRUE(AskFor().ok());
  }
}

TEST_F(KernelServiceRpcTest, WhatIsNoKernelIsRefusedByF2AndNamedByF1) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  const std::pair<const char*, std::function<void(v1::ComputeBlockResponse&)>> kFaults[] = {
      // The first tile is K(S, S).
      {"KERNEL_NOT_SYMMETRIC", [](v1::ComputeBlockResponse& r) { SetNumber(r, 1, 0.123); }},
      {"KERNEL_NOT_POSITIVE_SEMIDEFINITE",
       [](v1::ComputeBlockResponse& r) {
         for (int i = 0; i < 10; ++i) SetNumber(r, static_cast<size_t>(11 * i), -1);
       }},
  };
  for (const auto& [reason, apply] : kFaults) {
    SCOPED_TRACE(reason);
    kernel.Say([&apply = apply](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse& r) {
      if (r.block().rows() == 10 && r.block().columns() == 10) apply(r);
      return grpc::Status::OK;
    });
    EXPECT_THAT(BuildOf("f2(landmarks=10)"), IsError(Code::FAILED_PRECONDITION, reason));
    std::optional<v1::Version> version;
    ASSERT_TRUE(Build(SpecOf("letter", "f1(landmarks=10)"), kRows, &version).ok());
    ASSERT_EQ(version->certificate().warnings_size(), 1);
    EXPECT_NE(version->certificate().warnings(0).find("It is a similarity"), std::string::npos);
  }
}

TEST_F(KernelServiceRpcTest, AServiceThatIsGoneIsUnavailableUntilItIsBack) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)").ok());
  kernel.Stop();
  for (const bool building : {false, true}) {
    const grpc::Status status = building ? BuildOf("f2(landmarks=10)") : AskFor();
    EXPECT_THAT(status, IsError(Code::UNAVAILABLE, "KERNEL_SERVICE_UNAVAILABLE"));
    EXPECT_TRUE(FactsOf(status).retry_ms.has_value());
  }
  kernel.Start();
  // gRPC waits for its own backoff before it connects again.
  grpc::Status status;
  do {
    status = AskFor();
  } while (status.error_code() == Code::UNAVAILABLE);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(KernelServiceRpcTest, AServiceThatHangsIsGivenUpAndHoldsNobodyElseUp) {
  options_.kernel_service_seconds = 2;
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)").ok());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)", "rbf(gamma=0.2)", "built-in").ok());
  kernel.Say([this](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse&) {
    hang_.Wait();
    return grpc::Status::OK;
  });
  grpc::Status hung;
  std::thread caller([&] { hung = AskFor(); });
  hang_.AwaitWaiting();
  EXPECT_TRUE(AskFor(nullptr, "built-in").ok());
  caller.join();
  EXPECT_THAT(hung, IsError(Code::UNAVAILABLE, "KERNEL_SERVICE_TIMED_OUT"));
  EXPECT_THAT(BuildOf("f2(landmarks=10)"), IsError(Code::UNAVAILABLE, "KERNEL_SERVICE_TIMED_OUT"));
  hang_.Open();
  kernel.Say(nullptr);
  EXPECT_TRUE(AskFor().ok());
  kernel.Stop();
}

TEST_F(KernelServiceRpcTest, ABuildThatWaitsForItsKernelCanBeCancelledAndShutDown) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  kernel.Say([this](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse&) {
    hang_.Wait();
    return grpc::Status::OK;
  });
  const v1::BuildSpec spec = SpecOf("letter", "f2(landmarks=10)");
  grpc::Status ended;
  std::thread builder([&] { ended = Build(spec, kRows); });
  hang_.AwaitWaiting();
  Answer(&MappingStub::CancelBuild, "name: 'letter' build_id: '" + spec.build_id() + "'");
  builder.join();
  EXPECT_EQ(ended.error_code(), Code::CANCELLED);
  // A second build hangs while the server stops.
  std::thread second([&] { ended = BuildOf("f2(landmarks=10)"); });
  while (kernel.calls() < 2) std::this_thread::yield();
  Stop();
  second.join();
  EXPECT_EQ(ended.error_code(), Code::UNAVAILABLE) << ended.error_message();
  hang_.Open();
}

TEST_F(KernelServiceRpcTest, OnlyServicesOnTheListAreCalled) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)").ok());
  EXPECT_THAT(BuildOf("f2(landmarks=10)", "service(endpoint=elsewhere)"),
              IsError(Code::FAILED_PRECONDITION, "KERNEL_SERVICE_NOT_LISTED", "spec.kernel"));
  // The operator has removed the version's kernel service from the server's options.
  Stop();
  options_.kernel_services.clear();
  Start();
  const int calls = kernel.calls();
  EXPECT_THAT(AskFor(), IsError(Code::FAILED_PRECONDITION, "KERNEL_SERVICE_NOT_LISTED"));
  EXPECT_EQ(kernel.calls(), calls);
}

TEST_F(KernelServiceRpcTest, AProxyOfTheEnvironmentIsNotAsked) {
  ASSERT_EQ(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
  ASSERT_EQ(setenv("grpc_proxy", "http://127.0.0.1:1", 1), 0);
  ScriptedKernel kernel;
  StartWith(kernel.address());
  unsetenv("http_proxy");
  unsetenv("grpc_proxy");
  // The test's own channel would go through the proxy, too.
  channel_ = grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials());
  mappings_ = v1::MappingService::NewStub(channel_);
  EXPECT_TRUE(BuildOf("f1(landmarks=10)").ok());
}

}  // namespace
}  // namespace phimap::testing
