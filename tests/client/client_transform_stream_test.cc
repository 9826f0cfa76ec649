#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "client/cpp/client.h"
#include "phimap/rpc/error_details.pb.h"
#include "tests/client/scripted_server.h"

namespace phimap::client {
namespace {

using ::testing::HasSubstr;

RowBlock Column(int32_t rows) {
  std::vector<float> values(rows);
  std::iota(values.begin(), values.end(), 0.0f);
  return MakeRowBlock(absl::Span<const float>(values), 1);
}

// Answers each request with its own rows as features.
v1::TransformStreamResponse Echo(const v1::TransformStreamRequest& request, bool first) {
  v1::TransformStreamResponse answer;
  if (first) {
    answer.mutable_version()->set_mapping("m");
    answer.mutable_version()->set_number(2);
  }
  *answer.mutable_features() = request.examples().dense();
  return answer;
}

class TransformStreamTest : public testing::Test {
 protected:
  absl::StatusOr<TransformStreamResult> Run(RowSource& rows,
                                            const TransformStreamOptions& options) {
    auto client = *Client::Connect(server_.target(), {});
    return client->TransformStream(
        "m", rows, [this](RowBlock block) { return Take(block); }, options);
  }
  absl::Status Take(const RowBlock& block) {
    if (static_cast<int>(seen_.size()) >= sink_fails_at_) return absl::InternalError("disk full");
    for (int32_t i = 0; i < block.rows; ++i) seen_.push_back(block.At(i, 0));
    return absl::OkStatus();
  }

  int sink_fails_at_ = 1 << 30;
  std::vector<double> seen_;
  ScriptedServer server_;
};

TEST_F(TransformStreamTest, FeaturesArriveInOrderAndTheVersionIsNamed) {
  std::vector<std::string> references;
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformStreamRequest request;
    while (stream.Read(&request)) {
      references.push_back(request.reference());
      stream.Write(Echo(request, references.size() == 1));
    }
    return grpc::Status::OK;
  };
  for (const int32_t rows_per_request : {0, 7}) {
    SCOPED_TRACE(rows_per_request);
    references.clear();
    seen_.clear();
    MemoryRowSource rows(Column(1000));
    const auto result = Run(rows, {.rows_per_request = rows_per_request});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows, 1000);
    EXPECT_EQ(result->version.number(), 2);
    std::vector<double> expected(1000);
    std::iota(expected.begin(), expected.end(), 0.0);
    EXPECT_EQ(seen_, expected);
    // The reference is in the first request only, so one version answers them all.
    ASSERT_GE(references.size(), 2);
    EXPECT_EQ(references[0], "m");
    EXPECT_EQ(references[1], "");
  }
}

// The server answers nothing until it holds a full window. A client that kept fewer in flight would
// never get an answer.
TEST_F(TransformStreamTest, KeepsAFullWindowOfRequestsInFlight) {
  constexpr int kWindow = 4;
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    std::vector<v1::TransformStreamRequest> held;
    v1::TransformStreamRequest request;
    bool first = true;
    while (stream.Read(&request)) {
      held.push_back(request);
      if (held.size() < kWindow) continue;
      for (const auto& one : held) stream.Write(Echo(one, std::exchange(first, false)));
      held.clear();
    }
    return grpc::Status::OK;
  };
  MemoryRowSource rows(Column(40));
  const auto result = Run(rows, {.window = kWindow, .rows_per_request = 1});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows, 40);
}

// A source that counts what was taken from it: the client may run ahead of the answers by the
// window and no more.
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
    v1::TransformStreamRequest request;
    while (stream.Read(&request)) stream.Write(Echo(request, false));
    return grpc::Status::OK;
  };
  CountingRows rows(Column(500));
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
    v1::TransformStreamRequest request;
    stream.Read(&request);
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "request 0: wrong width");
  };
  MemoryRowSource rows(Column(1000));
  const absl::Status status = Run(rows, {.window = 1, .rows_per_request = 1}).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("request 0: wrong width"));
}

// The server never answers, so the deadline always comes first.
TEST_F(TransformStreamTest, AStreamThatTakesLongerThanItsTimeoutIsEnded) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformStreamRequest request;
    while (stream.Read(&request)) {
    }
    return grpc::Status::CANCELLED;
  };
  MemoryRowSource rows(Column(1000));
  const absl::Status status =
      Run(rows, {.window = 1, .rows_per_request = 1, .timeout = absl::Milliseconds(50)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(TransformStreamTest, ErrorOfTheSinkEndsTheStreamAndIsReturned) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformStreamRequest request;
    while (stream.Read(&request)) stream.Write(Echo(request, false));
    return grpc::Status::CANCELLED;
  };
  sink_fails_at_ = 5;
  MemoryRowSource rows(Column(100'000));
  EXPECT_EQ(Run(rows, {.rows_per_request = 1}).status(), absl::InternalError("disk full"));
}

TEST_F(TransformStreamTest, AnswerOfTheWrongHeightIsAnError) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformStreamRequest request;
    stream.Read(&request);
    v1::TransformStreamResponse answer = Echo(request, true);
    answer.mutable_features()->set_rows(1);
    stream.Write(answer);
    return grpc::Status::OK;
  };
  MemoryRowSource rows(Column(4));
  const absl::Status status = Run(rows, {.rows_per_request = 4}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("to a request of 4 rows"));
}

TEST_F(TransformStreamTest, MissingAnswersAreAnError) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformStreamRequest request;
    while (stream.Read(&request)) {
    }
    return grpc::Status::OK;
  };
  MemoryRowSource rows(Column(2));
  EXPECT_THAT(Run(rows, {.rows_per_request = 1}).status().message(),
              HasSubstr("2 requests unanswered"));
}

TEST_F(TransformStreamTest, SourceWithoutRowsIsAnError) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformStreamRequest request;
    stream.Read(&request);
    return grpc::Status::OK;
  };
  MemoryRowSource rows(Column(0));
  EXPECT_EQ(Run(rows, {}).status(), absl::InvalidArgumentError("the input has no rows"));
}

// What one attempt of a stream was sent.
struct StreamAttempt {
  std::string reference;
  std::string digest;
  // First value of each request.
  std::vector<float> rows;
};

class TransformRetryTest : public TransformStreamTest {
 protected:
  // The first stream answers `answered` requests and breaks at the next; the others answer all.
  void BreakTheFirstStreamAfter(size_t answered) {
    server_.transform_stream = [this, answered](TransformStreamStream& stream) {
      StreamAttempt& attempt = attempts_.emplace_back();
      v1::TransformStreamRequest request;
      while (stream.Read(&request)) {
        if (attempt.rows.empty()) {
          attempt.reference = request.reference();
          attempt.digest = request.expected_digest();
        } else {
          EXPECT_EQ(request.reference() + request.expected_digest(), "");
        }
        float first;
        std::memcpy(&first, request.examples().dense().float32_le().data(), sizeof(first));
        attempt.rows.push_back(first);
        if (attempts_.size() == 1 && attempt.rows.size() > answered) {
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server stops");
        }
        v1::TransformStreamResponse answer = Echo(request, attempt.rows.size() == 1);
        if (answer.has_version()) answer.mutable_version()->set_digest("d2");
        stream.Write(answer);
      }
      return grpc::Status::OK;
    };
  }
  absl::StatusOr<TransformStreamResult> RunWith(RetryPolicy retry, TransformStreamOptions options,
                                                RowSource& rows) {
    options.on_retry = [this](const absl::Status& error, absl::Duration wait) {
      errors_.push_back(error);
      waits_.push_back(wait);
    };
    auto client = *Client::Connect(server_.target(), {.retry = retry});
    return client->TransformStream(
        "m", rows, [this](RowBlock block) { return Take(block); }, options);
  }
  static std::vector<double> UpTo(int rows) {
    std::vector<double> values(rows);
    std::iota(values.begin(), values.end(), 0.0);
    return values;
  }

  const RetryPolicy fast_{.max_attempts = 3, .initial_backoff = absl::Milliseconds(1)};
  std::vector<StreamAttempt> attempts_;
  std::vector<absl::Status> errors_;
  std::vector<absl::Duration> waits_;
};

TEST_F(TransformRetryTest, ABrokenStreamGoesOnAtTheFirstRowWithoutAnAnswerOnTheSameVersion) {
  const StopAtEnd stop(server_);
  BreakTheFirstStreamAfter(3);
  MemoryRowSource rows(Column(20));
  const auto result = RunWith(fast_, {.window = 4, .rows_per_request = 2}, rows);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows, 20);
  EXPECT_EQ(seen_, UpTo(20));
  ASSERT_EQ(attempts_.size(), 2);
  EXPECT_EQ(attempts_[0].reference, "m");
  EXPECT_EQ(attempts_[0].digest, "");
  EXPECT_EQ(attempts_[1].reference, "m@2");
  EXPECT_EQ(attempts_[1].digest, "d2");
  EXPECT_THAT(attempts_[1].rows, testing::ElementsAre(6, 8, 10, 12, 14, 16, 18));
  ASSERT_EQ(errors_.size(), 1);
  EXPECT_EQ(errors_[0], absl::UnavailableError("the server stops"));
}

// An input that is read once: nothing is read from it twice, and a break does not interrupt it.
TEST_F(TransformRetryTest, ASourceThatCannotRewindIsNeitherRewoundNorInterruptedByARetry) {
  class Pipe : public MemoryRowSource {
   public:
    using MemoryRowSource::MemoryRowSource;
    absl::StatusOr<ExampleBlock> Next(const BlockLimits& limits) override {
      if (interrupted) return absl::CancelledError("interrupted");
      return MemoryRowSource::Next(limits);
    }
    bool CanRewind() const override { return false; }
    void Interrupt() override { interrupted = true; }
    std::atomic<bool> interrupted = false;
  };
  const StopAtEnd stop(server_);
  BreakTheFirstStreamAfter(0);
  Pipe rows(Column(9));
  const auto result = RunWith(fast_, {.window = 2, .rows_per_request = 1}, rows);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(seen_, UpTo(9));
}

TEST_F(TransformRetryTest, AttemptsWithoutAnAnswerAreCountedAndTheLastErrorIsReturned) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [this](TransformStreamStream&) {
    attempts_.emplace_back();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
  };
  MemoryRowSource rows(Column(9));
  EXPECT_EQ(RunWith(fast_, {.rows_per_request = 1}, rows).status(),
            absl::UnavailableError("not yet"));
  EXPECT_EQ(attempts_.size(), 3);
  EXPECT_THAT(waits_, testing::ElementsAre(absl::Milliseconds(1), absl::Milliseconds(2)));
}

// A user who named the wrong server should not wait as long as for one that restarts.
TEST_F(TransformRetryTest, AttemptsBeforeTheFirstAnswerAreAtMostFive) {
  const StopAtEnd stop(server_);
  for (const bool answers : {false, true}) {
    SCOPED_TRACE(answers);
    attempts_.clear();
    server_.transform_stream = [&](TransformStreamStream& stream) {
      attempts_.emplace_back();
      v1::TransformStreamRequest request;
      if (answers && attempts_.size() == 1 && stream.Read(&request)) {
        stream.Write(Echo(request, true));
      }
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
    };
    MemoryRowSource rows(Column(9));
    const RetryPolicy eight{.max_attempts = 8, .initial_backoff = absl::Milliseconds(1)};
    EXPECT_EQ(RunWith(eight, {.window = 1, .rows_per_request = 1}, rows).status(),
              absl::UnavailableError("not yet"));
    EXPECT_EQ(attempts_.size(), answers ? 8 : 5);
  }
}

// Each stream answers one request and breaks: ten times as often as attempts are allowed in a row.
TEST_F(TransformRetryTest, AnAnswerStartsTheCountAgain) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [this](TransformStreamStream& stream) {
    attempts_.emplace_back();
    v1::TransformStreamRequest request;
    if (!stream.Read(&request)) return grpc::Status::OK;
    stream.Write(Echo(request, true));
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "one at a time");
  };
  MemoryRowSource rows(Column(20));
  const auto result = RunWith({.max_attempts = 2, .initial_backoff = absl::Milliseconds(1)},
                              {.window = 1, .rows_per_request = 1}, rows);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(seen_, UpTo(20));
}

// As the server refuses a version, with the reason that programs switch on.
grpc::Status Refusal(grpc::StatusCode code, const std::string& reason) {
  rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("phimap");
  rpc::Status status;
  status.set_code(code);
  status.set_message(reason);
  google::protobuf::Any& detail = *status.add_details();
  detail.set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  detail.set_value(info.SerializeAsString());
  return grpc::Status(code, reason, status.SerializeAsString());
}

// As after an export, a deletion and an import in the midst of a stream.
TEST_F(TransformRetryTest, AVersionWhoseNumberIsGoneIsAskedForByItsDigest) {
  const StopAtEnd stop(server_);
  for (const char* const reason : {"VERSION_NOT_FOUND", "DIGEST_MISMATCH"}) {
    SCOPED_TRACE(reason);
    attempts_.clear();
    seen_.clear();
    server_.transform_stream = [&](TransformStreamStream& stream) {
      StreamAttempt& attempt = attempts_.emplace_back();
      v1::TransformStreamRequest request;
      for (int i = 0; stream.Read(&request); ++i) {
        if (i == 0) attempt.reference = request.reference();
        if (i == 0) attempt.digest = request.expected_digest();
        if (attempts_.size() == 1 && i == 3) {
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server stops");
        }
        if (attempt.reference == "m@2") return Refusal(grpc::StatusCode::NOT_FOUND, reason);
        v1::TransformStreamResponse answer = Echo(request, i == 0);
        if (answer.has_version()) answer.mutable_version()->set_digest("d2");
        stream.Write(answer);
      }
      return grpc::Status::OK;
    };
    MemoryRowSource rows(Column(20));
    const auto result = RunWith(fast_, {.window = 4, .rows_per_request = 2}, rows);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(seen_, UpTo(20));
    ASSERT_EQ(attempts_.size(), 3);
    EXPECT_EQ(attempts_[1].reference, "m@2");
    EXPECT_EQ(attempts_[2].reference, "m@sha256:d2");
    EXPECT_EQ(attempts_[2].digest, "d2");
  }
}

TEST_F(TransformRetryTest, WhereTheDigestIsGoneTooTheErrorIsTheNumbers) {
  const StopAtEnd stop(server_);
  std::vector<std::string> references;
  server_.transform_stream = [&](TransformStreamStream& stream) {
    v1::TransformStreamRequest request;
    stream.Read(&request);
    references.push_back(request.reference());
    return references.size() % 2 == 1
               ? Refusal(grpc::StatusCode::FAILED_PRECONDITION, "DIGEST_MISMATCH")
               : Refusal(grpc::StatusCode::NOT_FOUND, "VERSION_NOT_FOUND");
  };
  auto client = *Client::Connect(server_.target(), {.retry = fast_});
  const auto run = [&](const std::string& reference, const std::string& digest) {
    MemoryRowSource rows(Column(9));
    return client
        ->TransformStream(reference, rows, [this](RowBlock block) { return Take(block); },
                          {.expected_digest = digest, .rows_per_request = 1})
        .status();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(run("m@2", "d2")));
  EXPECT_THAT(references, testing::ElementsAre("m@2", "m@sha256:d2"));
  // Only a number with its digest is looked for elsewhere.
  for (const char* const reference : {"m", "m@prod", "m@sha256:d2"}) {
    references.clear();
    EXPECT_TRUE(absl::IsFailedPrecondition(run(reference, "d2")));
    EXPECT_THAT(references, testing::ElementsAre(reference));
  }
}

TEST_F(TransformRetryTest, WhatAnotherAttemptCannotMendIsReturnedAtOnce) {
  const StopAtEnd stop(server_);
  for (const grpc::StatusCode code :
       {grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::FAILED_PRECONDITION,
        grpc::StatusCode::NOT_FOUND, grpc::StatusCode::INTERNAL,
        grpc::StatusCode::RESOURCE_EXHAUSTED}) {
    SCOPED_TRACE(code);
    attempts_.clear();
    server_.transform_stream = [&](TransformStreamStream&) {
      attempts_.emplace_back();
      return grpc::Status(code, "no");
    };
    MemoryRowSource rows(Column(9));
    EXPECT_EQ(static_cast<int>(RunWith(fast_, {.rows_per_request = 1}, rows).status().code()),
              static_cast<int>(code));
    EXPECT_EQ(attempts_.size(), 1);
  }
}

// google.rpc.Status{details: Any{type_url, RetryInfo{retry_delay: Duration{nanos: 50 ms}}}}, which
// the server sends with a refusal that passes.
TEST_F(TransformRetryTest, ARefusalThatSaysWhenToComeAgainIsWaitedFor) {
  const std::string url = "type.googleapis.com/google.rpc.RetryInfo";
  const std::string info = std::string("\x0a\x05\x10\x80\xe1\xeb\x17", 7);
  const std::string any =
      absl::StrCat("\x0a", std::string(1, static_cast<char>(url.size())), url, "\x12\x07", info);
  const std::string details =
      absl::StrCat("\x08\x08\x1a", std::string(1, static_cast<char>(any.size())), any);
  const StopAtEnd stop(server_);
  server_.transform_stream = [&](TransformStreamStream& stream) {
    attempts_.emplace_back();
    if (attempts_.size() == 1) {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", details);
    }
    v1::TransformStreamRequest request;
    while (stream.Read(&request)) stream.Write(Echo(request, false));
    return grpc::Status::OK;
  };
  MemoryRowSource rows(Column(3));
  const auto result = RunWith(fast_, {.rows_per_request = 1}, rows);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(seen_, UpTo(3));
  EXPECT_THAT(waits_, testing::ElementsAre(absl::Milliseconds(50)));
}

TEST_F(TransformRetryTest, AWaitThatTheTimeoutDoesNotAllowIsNotBegun) {
  const StopAtEnd stop(server_);
  BreakTheFirstStreamAfter(1);
  MemoryRowSource rows(Column(9));
  const RetryPolicy slow{.initial_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)};
  EXPECT_EQ(RunWith(slow, {.rows_per_request = 1, .timeout = absl::Minutes(10)}, rows).status(),
            absl::UnavailableError("the server stops"));
  EXPECT_EQ(attempts_.size(), 1);
}

TEST_F(TransformRetryTest, ACancelEndsTheWaitForTheNextAttempt) {
  const StopAtEnd stop(server_);
  BreakTheFirstStreamAfter(1);
  MemoryRowSource rows(Column(9));
  CancelToken cancel;
  auto client = *Client::Connect(server_.target(), {.retry = {.initial_backoff = absl::Hours(1),
                                                              .max_backoff = absl::Hours(1)}});
  std::thread canceller;
  const auto status = client->TransformStream(
      "m", rows, [this](RowBlock block) { return Take(block); },
      {.rows_per_request = 1,
       .on_retry = [&](const absl::Status&,
                       absl::Duration) { canceller = std::thread([&] { cancel.Cancel(); }); }},
      &cancel);
  canceller.join();
  EXPECT_EQ(status.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace phimap::client
