#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "phimap/rpc/error_details.pb.h"
#include "tests/client/transform_stream_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

TEST_F(TransformStreamTest, FeaturesArriveInOrderAndTheVersionIsNamed) {
  std::vector<std::string> references;
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    while (stream.Read(&request)) {
      references.push_back(request.reference());
      stream.Write(EchoFeatures(request, references.size() == 1));
    }
    return grpc::Status::OK;
  };
  for (const int32_t rows_per_request : {0, 7}) {
    SCOPED_TRACE(rows_per_request);
    references.clear();
    seen_.clear();
    MemoryRowSource rows(OneColumn(1000));
    const auto result = Run(rows, {.rows_per_request = rows_per_request}).value();
    EXPECT_EQ(result.rows, 1000);
    EXPECT_EQ(result.version.number(), 2);
    std::vector<double> expected(1000);
    std::iota(expected.begin(), expected.end(), 0.0);
    EXPECT_EQ(seen_, expected);
    // Only the first request contains the reference, so that one version answers all requests.
    ASSERT_GE(references.size(), 2);
    EXPECT_EQ(references[0], "m");
    EXPECT_EQ(references[1], "");
  }
}

// The server does not answer until it has a full window of requests. A client that kept fewer
// requests in flight would never get an answer.
TEST_F(TransformStreamTest, KeepsAFullWindowOfRequestsInFlight) {
  constexpr int kWindow = 4;
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    std::vector<v1::TransformRequest> held;
    v1::TransformRequest request;
    bool first = true;
    while (stream.Read(&request)) {
      held.push_back(request);
      if (held.size() < kWindow) continue;
      for (const auto& one : held) stream.Write(EchoFeatures(one, std::exchange(first, false)));
      held.clear();
    }
    return grpc::Status::OK;
  };
  MemoryRowSource rows(OneColumn(40));
  const auto result = Run(rows, {.window = kWindow, .rows_per_request = 1}).value();
  EXPECT_EQ(result.rows, 40);
}

// The source counts the rows that are read from it. The rows read may exceed the rows answered by
// the window, but by no more.
TEST_F(TransformStreamTest, NeverRunsAheadOfTheAnswersByMoreThanTheWindow) {
  class CountingRows : public MemoryRowSource {
   public:
    using MemoryRowSource::MemoryRowSource;
    absl::StatusOr<ExampleBlock> Next(const BlockLimits& limits) override {
      auto block = MemoryRowSource::Next(limits);
      taken += block->rows();
      return block;
    }
    std::atomic<int> taken = 0;
  };
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    while (stream.Read(&request)) stream.Write(EchoFeatures(request, false));
    return grpc::Status::OK;
  };
  CountingRows rows(OneColumn(500));
  int answered = 0;
  int most = 0;
  auto client = *Client::Connect(server_.target(), {});
  const auto sink = [&](RowBlock block) {
    most = std::max(most, rows.taken - answered);
    answered += block.rows;
    return absl::OkStatus();
  };
  ASSERT_TRUE(client->TransformStream("m", rows, sink, {.window = 3, .rows_per_request = 1}).ok());
  EXPECT_LE(most, 3);
}

TEST_F(TransformStreamTest, ErrorOfTheServerEndsAStreamWhoseWindowIsFull) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    stream.Read(&request);
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "request 0: wrong width");
  };
  MemoryRowSource rows(OneColumn(1000));
  const absl::Status status = Run(rows, {.window = 1, .rows_per_request = 1}).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("request 0: wrong width"));
}

// The server never answers, so the stream always ends by its deadline.
TEST_F(TransformStreamTest, AStreamThatTakesLongerThanItsTimeoutIsEnded) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    while (stream.Read(&request)) {
    }
    return grpc::Status::CANCELLED;
  };
  MemoryRowSource rows(OneColumn(1000));
  const absl::Status status =
      Run(rows, {.window = 1, .rows_per_request = 1, .timeout = absl::Milliseconds(50)}).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
}

TEST_F(TransformStreamTest, ErrorOfTheSinkEndsTheStreamAndIsReturned) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    while (stream.Read(&request)) stream.Write(EchoFeatures(request, false));
    return grpc::Status::CANCELLED;
  };
  sink_fails_at_ = 5;
  MemoryRowSource rows(OneColumn(100'000));
  EXPECT_EQ(Run(rows, {.rows_per_request = 1}).status(), absl::InternalError("disk full"));
}

TEST_F(TransformStreamTest, AnswerOfTheWrongHeightIsAnError) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    stream.Read(&request);
    v1::TransformResponse answer = EchoFeatures(request, true);
    answer.mutable_features()->set_rows(1);
    stream.Write(answer);
    return grpc::Status::OK;
  };
  MemoryRowSource rows(OneColumn(4));
  EXPECT_THAT(Run(rows, {.rows_per_request = 4}).status(),
              testing::IsError(StatusCode::kInternal, _, _, HasSubstr("to a request of 4 rows")));
}

TEST_F(TransformStreamTest, MissingAnswersAreAnError) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    while (stream.Read(&request)) {
    }
    return grpc::Status::OK;
  };
  MemoryRowSource rows(OneColumn(2));
  EXPECT_THAT(Run(rows, {.rows_per_request = 1}).status().message(),
              HasSubstr("2 requests unanswered"));
}

TEST_F(TransformStreamTest, SourceWithoutRowsIsAnError) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformRequest request;
    stream.Read(&request);
    return grpc::Status::OK;
  };
  MemoryRowSource rows(OneColumn(0));
  EXPECT_EQ(Run(rows, {}).status(), absl::InvalidArgumentError("the input has no rows"));
}

}  // namespace
}  // namespace phimap::client
