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
#include "tests/server/rpc/server_fixture.h"
#include "tests/server/support/scripted_kernel.h"

namespace phimap {
namespace {

using testing::FactsOf;
using testing::Gate;
using testing::ScriptedKernel;
using testing::ServerFixture;
using testing::UniformExamples;

constexpr char kService[] = "service(endpoint=here, kernel=rbf)";
constexpr int kRows = 200;
constexpr int kColumns = 3;

std::vector<double> NumbersOf(const v1::DenseRows& rows) {
  std::vector<double> numbers;
  if (!rows.float64_le().empty()) {
    numbers.resize(rows.float64_le().size() / sizeof(double));
    std::memcpy(numbers.data(), rows.float64_le().data(), rows.float64_le().size());
    return numbers;
  }
  std::vector<float> singles(rows.float32_le().size() / sizeof(float));
  std::memcpy(singles.data(), rows.float32_le().data(), rows.float32_le().size());
  return {singles.begin(), singles.end()};
}

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

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
    v1::TransformRequest request;
    request.set_reference(mapping);
    *request.mutable_examples() = UniformExamples(rows, kColumns, /*seed=*/9);
    return request;
  }
  grpc::Status Ask(v1::TransformResponse* response = nullptr,
                   const std::string& mapping = "letter") {
    v1::TransformResponse ignored;
    return Transform(RequestFor(mapping), response != nullptr ? response : &ignored);
  }

  Gate hang_;
};

// Compares a kernel service that is written with phimap's C++ helper with the built-in kernel, on
// the same stream of rows.
TEST_F(KernelServiceRpcTest, FeaturesAreThoseOfTheBuiltInKernelAtOneRoundTripATransform) {
  client::KernelServer::Options kernels;
  kernels.kernels["rbf"] = [](const client::Batch& left, const client::Batch& right,
                              double* block) {
    for (size_t i = 0; i < left.size(); ++i) {
      for (size_t j = 0; j < right.size(); ++j) {
        double square = 0;
        for (int64_t k = 0; k < left.columns(); ++k) {
          const double difference = left.number(i, k) - right.number(j, k);
          square += difference * difference;
        }
        *block++ = std::exp(-5 * square);
      }
    }
    return absl::OkStatus();
  };
  const auto kernel = client::KernelServer::Start(kernels);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  StartWith((*kernel)->address());
  // The number beside each mapping is how many blocks of kernel values its build requests. With
  // landmarks S, there are at most four: K(S, S); the held-out rows with S; pairs of held-out rows;
  // and for the spectrum all held-out rows with each other. Not every mapping needs all blocks.
  const std::pair<const char*, int64_t> kMappings[] = {
      {"f1(landmarks=24, serving_type=float64)", 2},
      {"f3(landmarks=24, dimensions=12, serving_type=float64)", 4},
      {"kpca(landmarks=24, dimensions=5, serving_type=float64)", 3},
      {"f2(landmarks=24, serving_type=float64)", 4},
  };
  for (const auto& [mapping, blocks] : kMappings) {
    SCOPED_TRACE(mapping);
    int64_t before = (*kernel)->calls();
    ASSERT_TRUE(BuildOf(mapping, kService, "served").ok());
    EXPECT_EQ((*kernel)->calls() - before, blocks);
    ASSERT_TRUE(BuildOf(mapping, "rbf(gamma=5)", "built-in").ok());
    v1::TransformResponse served;
    v1::TransformResponse built_in;
    before = (*kernel)->calls();
    ASSERT_TRUE(Ask(&served, "served").ok());
    // The landmarks are sent together with the rows, so even the first transform takes only one
    // call.
    EXPECT_EQ((*kernel)->calls() - before, 1);
    ASSERT_TRUE(Ask(&built_in, "built-in").ok());
    EXPECT_LE(LargestDifference(NumbersOf(served.features()), NumbersOf(built_in.features())),
              1e-6);
    before = (*kernel)->calls();
    ASSERT_TRUE(Ask(&served, "served").ok());
    EXPECT_EQ((*kernel)->calls() - before, 1);
  }
  // If the service has forgotten the landmarks, phimapd sends them again. A transform then takes
  // one more call. A build takes two more, because its blocks have two different sets of
  // columns, the landmarks and the held-out rows.
  (*kernel)->Forget();
  int64_t before = (*kernel)->calls();
  ASSERT_TRUE(Ask(nullptr, "served").ok());
  EXPECT_EQ((*kernel)->calls() - before, 2);
  (*kernel)->Forget();
  before = (*kernel)->calls();
  ASSERT_TRUE(BuildOf("f2(landmarks=24, serving_type=float64)", kService, "served").ok());
  EXPECT_EQ((*kernel)->calls() - before, 4 + 2);
  v1::TransformRequest with_residual = RequestFor("served");
  with_residual.set_residual(true);
  v1::TransformResponse served;
  v1::TransformResponse built_in;
  ASSERT_TRUE(Transform(with_residual, &served).ok());
  with_residual.set_reference("built-in");
  ASSERT_TRUE(Transform(with_residual, &built_in).ok());
  EXPECT_LE(LargestDifference({served.residuals().begin(), served.residuals().end()},
                              {built_in.residuals().begin(), built_in.residuals().end()}),
            1e-5);
  EXPECT_EQ(served.residual_allowances_size(), served.residuals_size());
}

TEST_F(KernelServiceRpcTest, AStreamIsMappedInOrder) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)").ok());
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  for (int i = 0; i < 40; ++i) {
    v1::TransformStreamRequest request;
    if (i == 0) request.set_reference("letter");
    *request.mutable_examples() = UniformExamples(1 + i % 3, kColumns, i + 1);
    ASSERT_TRUE(stream->Write(request));
  }
  stream->WritesDone();
  v1::TransformStreamResponse response;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(stream->Read(&response));
    v1::TransformRequest alone = RequestFor("letter");
    *alone.mutable_examples() = UniformExamples(1 + i % 3, kColumns, i + 1);
    v1::TransformResponse expected;
    ASSERT_TRUE(Transform(alone, &expected).ok());
    EXPECT_EQ(response.features().SerializeAsString(), expected.features().SerializeAsString());
  }
  EXPECT_TRUE(stream->Finish().ok());
}

struct Lie {
  const char* what;
  const char* reason;
  const char* words;
  std::function<grpc::Status(v1::ComputeBlockResponse&)> tell;
};

void SetNumber(v1::ComputeBlockResponse& response, size_t index, double value) {
  std::memcpy(response.mutable_block()->mutable_float64_le()->data() + index * sizeof(double),
              &value, sizeof(value));
}

const Lie kLies[] = {
    {"another number of rows", "KERNEL_SERVICE_ANSWER_INVALID", "expected",
     [](v1::ComputeBlockResponse& r) {
       r.mutable_block()->set_rows(r.block().rows() + 1);
       return grpc::Status::OK;
     }},
    {"another number of columns", "KERNEL_SERVICE_ANSWER_INVALID", "expected",
     [](v1::ComputeBlockResponse& r) {
       r.mutable_block()->set_columns(1);
       return grpc::Status::OK;
     }},
    {"fewer bytes than it says", "KERNEL_SERVICE_ANSWER_INVALID", "bytes of values",
     [](v1::ComputeBlockResponse& r) {
       r.mutable_block()->mutable_float64_le()->pop_back();
       return grpc::Status::OK;
     }},
    {"no block", "KERNEL_SERVICE_ANSWER_INVALID", "0 × 0",
     [](v1::ComputeBlockResponse& r) {
       r.Clear();
       return grpc::Status::OK;
     }},
    {"no values", "KERNEL_SERVICE_ANSWER_INVALID", "no values",
     [](v1::ComputeBlockResponse& r) {
       r.mutable_block()->clear_values();
       return grpc::Status::OK;
     }},
    {"NaN", "KERNEL_SERVICE_ANSWER_INVALID", "nan in row 0, column 1",
     [](v1::ComputeBlockResponse& r) {
       SetNumber(r, 1, std::numeric_limits<double>::quiet_NaN());
       return grpc::Status::OK;
     }},
    {"an infinity", "KERNEL_SERVICE_ANSWER_INVALID", "inf in row 0, column 0",
     [](v1::ComputeBlockResponse& r) {
       SetNumber(r, 0, std::numeric_limits<double>::infinity());
       return grpc::Status::OK;
     }},
    {"an error", "KERNEL_SERVICE_FAILED", "INTERNAL: it broke",
     [](v1::ComputeBlockResponse&) {
       return grpc::Status(grpc::StatusCode::INTERNAL, "it broke");
     }},
    {"NOT_FOUND whatever it is sent", "KERNEL_SERVICE_FAILED", "NOT_FOUND",
     [](v1::ComputeBlockResponse&) { return grpc::Status(grpc::StatusCode::NOT_FOUND, "what?"); }},
    {"an answer beyond the limit", "KERNEL_SERVICE_FAILED", "RESOURCE_EXHAUSTED",
     [](v1::ComputeBlockResponse& r) {
       r.mutable_block()->mutable_float64_le()->resize(2 << 20);
       return grpc::Status::OK;
     }},
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
      return lie.tell(response);
    });
    for (const bool building : {false, true}) {
      const grpc::Status status = building ? BuildOf("f2(landmarks=10)") : Ask();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
      EXPECT_EQ(FactsOf(status).reason, lie.reason) << status.error_message();
      EXPECT_EQ(FactsOf(status).metadata["service"], "here");
      EXPECT_EQ(FactsOf(status).metadata["kernel"], "rbf");
      EXPECT_NE(status.error_message().find(lie.words), std::string::npos)
          << status.error_message();
    }
    EXPECT_TRUE(Ask(nullptr, "built-in").ok());
    kernel.Say(nullptr);
    EXPECT_TRUE(Ask().ok());
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
    const grpc::Status status = BuildOf("f2(landmarks=10)");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(FactsOf(status).reason, reason) << status.error_message();
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
    const grpc::Status status = building ? BuildOf("f2(landmarks=10)") : Ask();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(FactsOf(status).reason, "KERNEL_SERVICE_UNAVAILABLE") << status.error_message();
    EXPECT_TRUE(FactsOf(status).retry_ms.has_value());
  }
  kernel.Start();
  // gRPC waits for its own backoff before it connects again.
  grpc::Status status;
  do {
    status = Ask();
  } while (status.error_code() == grpc::StatusCode::UNAVAILABLE);
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
  std::thread caller([&] { hung = Ask(); });
  hang_.AwaitWaiting();
  EXPECT_TRUE(Ask(nullptr, "built-in").ok());
  caller.join();
  EXPECT_EQ(hung.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(FactsOf(hung).reason, "KERNEL_SERVICE_TIMED_OUT") << hung.error_message();
  const grpc::Status build = BuildOf("f2(landmarks=10)");
  EXPECT_EQ(build.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(FactsOf(build).reason, "KERNEL_SERVICE_TIMED_OUT") << build.error_message();
  hang_.Open();
  kernel.Say(nullptr);
  EXPECT_TRUE(Ask().ok());
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
  grpc::ClientContext context;
  v1::CancelBuildRequest cancel;
  cancel.set_mapping(spec.mapping());
  cancel.set_build_id(spec.build_id());
  v1::BuildJob job;
  EXPECT_TRUE(mappings_->CancelBuild(&context, cancel, &job).ok());
  builder.join();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::CANCELLED);
  // A second build hangs while the server stops.
  std::thread second([&] { ended = BuildOf("f2(landmarks=10)"); });
  while (kernel.calls() < 2) std::this_thread::yield();
  Stop();
  second.join();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE) << ended.error_message();
  hang_.Open();
}

TEST_F(KernelServiceRpcTest, OnlyServicesOnTheListAreCalled) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildOf("f2(landmarks=10)").ok());
  const grpc::Status status = BuildOf("f2(landmarks=10)", "service(endpoint=elsewhere)");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(FactsOf(status).reason, "KERNEL_SERVICE_NOT_LISTED");
  EXPECT_EQ(FactsOf(status).field, "spec.kernel");
  // The operator has removed the version's kernel service from the server's options.
  Stop();
  options_.kernel_services.clear();
  Start();
  const int calls = kernel.calls();
  const grpc::Status unlisted = Ask();
  EXPECT_EQ(unlisted.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(FactsOf(unlisted).reason, "KERNEL_SERVICE_NOT_LISTED");
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
}  // namespace phimap
