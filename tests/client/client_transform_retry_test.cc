#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "phimap/rpc/error_details.pb.h"
#include "tests/client/transform_stream_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

// What the server received in one attempt of a stream.
struct StreamAttempt {
  std::string reference;
  std::string digest;
  // The first value of each request.
  std::vector<float> rows;
};

class TransformRetryTest : public TransformStreamTest {
 protected:
  // Makes the first stream answer `answered` requests and break at the next one. Later streams
  // answer all requests.
  void BreakTheFirstStreamAfter(size_t answered) {
    server_.transform_stream = [this, answered](TransformStreamStream& stream) {
      StreamAttempt& attempt = attempts_.emplace_back();
      v1::TransformRequest request;
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
        v1::TransformResponse answer = EchoFeatures(request, attempt.rows.size() == 1);
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
  MemoryRowSource rows(OneColumn(20));
  const auto result = RunWith(fast_, {.window = 4, .rows_per_request = 2}, rows).value();
  EXPECT_EQ(result.rows, 20);
  EXPECT_EQ(seen_, UpTo(20));
  ASSERT_EQ(attempts_.size(), 2);
  EXPECT_EQ(attempts_[0].reference, "m");
  EXPECT_EQ(attempts_[0].digest, "");
  EXPECT_EQ(attempts_[1].reference, "m@2");
  EXPECT_EQ(attempts_[1].digest, "d2");
  EXPECT_THAT(attempts_[1].rows, ElementsAre(6, 8, 10, 12, 14, 16, 18));
  ASSERT_EQ(errors_.size(), 1);
  EXPECT_EQ(errors_[0], absl::UnavailableError("the server stops"));
}

// The source can be read only once. Therefore the client must not rewind it, and must not interrupt
// it when the stream breaks.
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
  Pipe rows(OneColumn(9));
  const auto result = RunWith(fast_, {.window = 2, .rows_per_request = 1}, rows).value();
  EXPECT_EQ(seen_, UpTo(9));
}

TEST_F(TransformRetryTest, AttemptsWithoutAnAnswerAreCountedAndTheLastErrorIsReturned) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [this](TransformStreamStream&) {
    attempts_.emplace_back();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
  };
  MemoryRowSource rows(OneColumn(9));
  EXPECT_EQ(RunWith(fast_, {.rows_per_request = 1}, rows).status(),
            absl::UnavailableError("not yet"));
  EXPECT_EQ(attempts_.size(), 3);
  EXPECT_THAT(waits_, ElementsAre(absl::Milliseconds(1), absl::Milliseconds(2)));
}

// The number of attempts before the first answer is limited. A user who has given a wrong address
// should not wait as long as for a server that restarts.
TEST_F(TransformRetryTest, AttemptsBeforeTheFirstAnswerAreAtMostFive) {
  const StopAtEnd stop(server_);
  for (const bool answers : {false, true}) {
    SCOPED_TRACE(answers);
    attempts_.clear();
    server_.transform_stream = [&](TransformStreamStream& stream) {
      attempts_.emplace_back();
      v1::TransformRequest request;
      if (answers && attempts_.size() == 1 && stream.Read(&request)) {
        stream.Write(EchoFeatures(request, true));
      }
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
    };
    MemoryRowSource rows(OneColumn(9));
    const RetryPolicy eight{.max_attempts = 8, .initial_backoff = absl::Milliseconds(1)};
    EXPECT_EQ(RunWith(eight, {.window = 1, .rows_per_request = 1}, rows).status(),
              absl::UnavailableError("not yet"));
    EXPECT_EQ(attempts_.size(), answers ? 8 : 5);
  }
}

// Each stream answers one request and then breaks. There are ten times as many breaks as attempts
// allowed without an answer.
TEST_F(TransformRetryTest, AnAnswerStartsTheCountAgain) {
  const StopAtEnd stop(server_);
  server_.transform_stream = [this](TransformStreamStream& stream) {
    attempts_.emplace_back();
    v1::TransformRequest request;
    if (!stream.Read(&request)) return grpc::Status::OK;
    stream.Write(EchoFeatures(request, true));
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "one at a time");
  };
  MemoryRowSource rows(OneColumn(20));
  const auto result = RunWith({.max_attempts = 2, .initial_backoff = absl::Milliseconds(1)},
                              {.window = 1, .rows_per_request = 1}, rows)
                          .value();
  EXPECT_EQ(seen_, UpTo(20));
}

// If a version is exported, deleted and imported again while a stream is broken, it has the same
// digest but another number.
TEST_F(TransformRetryTest, AVersionWhoseNumberIsGoneIsAskedForByItsDigest) {
  const StopAtEnd stop(server_);
  for (const char* const reason : {"VERSION_NOT_FOUND", "DIGEST_MISMATCH"}) {
    SCOPED_TRACE(reason);
    attempts_.clear();
    seen_.clear();
    server_.transform_stream = [&](TransformStreamStream& stream) {
      StreamAttempt& attempt = attempts_.emplace_back();
      v1::TransformRequest request;
      for (int i = 0; stream.Read(&request); ++i) {
        if (i == 0) attempt.reference = request.reference();
        if (i == 0) attempt.digest = request.expected_digest();
        if (attempts_.size() == 1 && i == 3) {
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server stops");
        }
        if (attempt.reference == "m@2") return Refusal(grpc::StatusCode::NOT_FOUND, reason);
        v1::TransformResponse answer = EchoFeatures(request, i == 0);
        if (answer.has_version()) answer.mutable_version()->set_digest("d2");
        stream.Write(answer);
      }
      return grpc::Status::OK;
    };
    MemoryRowSource rows(OneColumn(20));
    const auto result = RunWith(fast_, {.window = 4, .rows_per_request = 2}, rows).value();
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
    v1::TransformRequest request;
    stream.Read(&request);
    references.push_back(request.reference());
    return references.size() % 2 == 1
               ? Refusal(grpc::StatusCode::FAILED_PRECONDITION, "DIGEST_MISMATCH")
               : Refusal(grpc::StatusCode::NOT_FOUND, "VERSION_NOT_FOUND");
  };
  auto client = *Client::Connect(server_.target(), {.retry = fast_});
  const auto run = [&](const std::string& reference, const std::string& digest) {
    MemoryRowSource rows(OneColumn(9));
    return client
        ->TransformStream(reference, rows, [this](RowBlock block) { return Take(block); },
                          {.expected_digest = digest, .rows_per_request = 1})
        .status();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(run("m@2", "d2")));
  EXPECT_THAT(references, ElementsAre("m@2", "m@sha256:d2"));
  // The client looks for a digest only if the reference was a version number with a known digest.
  for (const char* const reference : {"m", "m@prod", "m@sha256:d2"}) {
    references.clear();
    EXPECT_TRUE(absl::IsFailedPrecondition(run(reference, "d2")));
    EXPECT_THAT(references, ElementsAre(reference));
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
    MemoryRowSource rows(OneColumn(9));
    EXPECT_EQ(static_cast<int>(RunWith(fast_, {.rows_per_request = 1}, rows).status().code()),
              static_cast<int>(code));
    EXPECT_EQ(attempts_.size(), 1);
  }
}

// With a temporary refusal, the server sends a google.rpc.Status. Its details contain an Any with a
// RetryInfo, whose retry_delay is a Duration of 50 ms, given in nanos.
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
    v1::TransformRequest request;
    while (stream.Read(&request)) stream.Write(EchoFeatures(request, false));
    return grpc::Status::OK;
  };
  MemoryRowSource rows(OneColumn(3));
  const auto result = RunWith(fast_, {.rows_per_request = 1}, rows).value();
  EXPECT_EQ(seen_, UpTo(3));
  EXPECT_THAT(waits_, ElementsAre(absl::Milliseconds(50)));
}

TEST_F(TransformRetryTest, AWaitThatTheTimeoutDoesNotAllowIsNotBegun) {
  const StopAtEnd stop(server_);
  BreakTheFirstStreamAfter(1);
  MemoryRowSource rows(OneColumn(9));
  const RetryPolicy slow{.initial_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)};
  EXPECT_EQ(RunWith(slow, {.rows_per_request = 1, .timeout = absl::Minutes(10)}, rows).status(),
            absl::UnavailableError("the server stops"));
  EXPECT_EQ(attempts_.size(), 1);
}

TEST_F(TransformRetryTest, ACancelEndsTheWaitForTheNextAttempt) {
  const StopAtEnd stop(server_);
  BreakTheFirstStreamAfter(1);
  MemoryRowSource rows(OneColumn(9));
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
