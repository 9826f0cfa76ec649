#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/thread/steady_time.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class TransformRpcTest : public ServerFixture {
 protected:
  TransformRpcTest() {
    hooks_.transform_clock = [this] { return SteadyNow() + absl::Seconds(seconds_ahead_.load()); };
    Start();
  }
  ~TransformRpcTest() override { Stop(); }  // the server uses seconds_ahead_ until it stops

  static v1::TransformRequest Request(const v1::Examples& examples) {
    return TransformOf("letter", examples);
  }

  std::string MustTransform(const v1::Examples& examples) {
    v1::TransformResponse response;
    EXPECT_THAT(Transform(Request(examples), &response), IsOk());
    return response.features().float32_le();
  }

  // The scheduler's clock is this many seconds ahead.
  std::atomic<int64_t> seconds_ahead_{0};
};

// Examples that contain only row i of `all`.
v1::Examples Row(const v1::Examples& all, int i) {
  v1::Examples one = all;
  one.mutable_dense()->set_rows(1);
  const int row_bytes = all.dense().columns() * 4;
  one.mutable_dense()->set_float32_le(all.dense().float32_le().substr(i * row_bytes, row_bytes));
  return one;
}

// The values of `all` as float64 bytes or, if `numbers`, as plain numbers.
v1::Examples Widened(const v1::Examples& all, bool numbers) {
  v1::Examples wide = all;
  const std::string bytes = all.dense().float32_le();
  std::vector<double> values(bytes.size() / 4);
  for (size_t i = 0; i < values.size(); ++i) {
    float value;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    values[i] = value;
  }
  if (numbers) {
    wide.mutable_dense()->mutable_numbers()->mutable_values()->Add(values.begin(), values.end());
  } else {
    wide.mutable_dense()->set_float64_le(values.data(), values.size() * 8);
  }
  return wide;
}

TEST_F(TransformRpcTest, ARowAloneInABatchAndInAnyEncodingGivesTheSameBits) {
  const v1::Version version = MustBuild();
  const v1::Examples all = UniformExamples(100, 3, 7);
  const std::string features = MustTransform(all);
  const size_t row_bytes = version.output_columns() * 4;
  ASSERT_EQ(features.size(), 100 * row_bytes);
  for (int i = 0; i < 100; i += 9) {
    EXPECT_EQ(MustTransform(Row(all, i)), features.substr(i * row_bytes, row_bytes));
  }
  EXPECT_EQ(MustTransform(Widened(all, false)), features);
  EXPECT_EQ(MustTransform(Widened(all, true)), features);
}

TEST_F(TransformRpcTest, ResidualsComeOnRequestAndLeaveTheFeaturesAlone) {
  MustBuild("letter", "f2(landmarks=5)");
  v1::TransformRequest request = Request(UniformExamples(20, 3, 7));
  v1::TransformResponse plain = Mapped(request);
  EXPECT_EQ(plain.residuals_size(), 0);
  EXPECT_EQ(plain.residual_allowances_size(), 0);
  request.set_residual(true);
  v1::TransformResponse response = Mapped(request);
  EXPECT_EQ(response.features().float32_le(), plain.features().float32_le());
  ASSERT_EQ(response.residuals_size(), 20);
  ASSERT_EQ(response.residual_allowances_size(), 20);
  const int columns = response.features().columns();
  for (int i = 0; i < 20; ++i) {
    double norm = 0;
    for (int j = 0; j < columns; ++j) {
      float value;
      std::memcpy(&value, response.features().float32_le().data() + 4 * (i * columns + j), 4);
      norm += static_cast<double>(value) * value;
    }
    // An rbf kernel has K(x, x) = 1.
    EXPECT_NEAR(response.residuals(i), std::max(0.0, 1 - norm), 1e-15);
    EXPECT_GT(response.residual_allowances(i), 0);
    EXPECT_LT(response.residual_allowances(i), 1e-3);
    // The residual of a row does not depend on the other rows of the request.
    v1::TransformRequest one = Request(Row(request.examples(), i));
    one.set_residual(true);
    v1::TransformResponse alone = Mapped(one);
    ASSERT_EQ(alone.residuals_size(), 1);
    EXPECT_EQ(alone.residuals(0), response.residuals(i));
    ASSERT_EQ(alone.residual_allowances_size(), 1);
    EXPECT_EQ(alone.residual_allowances(0), response.residual_allowances(i));
  }
}

TEST_F(TransformRpcTest, ResidualsOfAStreamAreThoseOfACallAndOnlyWhereTheyAreAskedFor) {
  MustBuild("letter", "f2(landmarks=5)");
  v1::TransformRequest request = Request(UniformExamples(9, 3, 7));
  request.set_residual(true);
  v1::TransformResponse response = Mapped(request);
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  bool first = true;
  for (const bool residual : {true, false, true}) {
    v1::TransformRequest message;
    if (first) message.set_reference("letter");
    first = false;
    *message.mutable_examples() = request.examples();
    message.set_residual(residual);
    ASSERT_TRUE(stream->Write(message));
  }
  stream->WritesDone();
  for (const bool residual : {true, false, true}) {
    v1::TransformResponse answer;
    ASSERT_TRUE(stream->Read(&answer));
    ASSERT_EQ(answer.residuals_size(), residual ? 9 : 0);
    ASSERT_EQ(answer.residual_allowances_size(), residual ? 9 : 0);
    for (int i = 0; residual && i < 9; ++i) {
      EXPECT_EQ(answer.residuals(i), response.residuals(i));
      EXPECT_EQ(answer.residual_allowances(i), response.residual_allowances(i));
    }
  }
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TransformRpcTest, AnswersWithTheVersionAndInItsServingType) {
  const v1::Version version = MustBuild("letter", "f2(landmarks=5, serving_type=float64)");
  v1::TransformResponse response = Mapped(Request(UniformExamples(2, 3)));
  EXPECT_EQ(response.version().digest(), version.ref().digest());
  EXPECT_EQ(response.version().number(), 1);
  EXPECT_EQ(response.features().rows(), 2);
  EXPECT_EQ(response.features().columns(), version.output_columns());
  EXPECT_EQ(response.features().float64_le().size(), 2 * 8 * version.output_columns());
}

TEST_F(TransformRpcTest, TheBareNameMeansTheNewestVersionAndOldOnesStay) {
  MustBuild("letter", "f2(landmarks=5)");
  v1::TransformResponse response = Mapped(Request(UniformExamples(1, 3)));
  EXPECT_EQ(response.version().number(), 1);
  MustBuild("letter", "f1(landmarks=6)");
  ASSERT_TRUE(Transform(Request(UniformExamples(1, 3)), &response).ok());
  EXPECT_EQ(response.version().number(), 2);
  v1::TransformRequest old = Request(UniformExamples(1, 3));
  old.set_reference("letter@1");
  ASSERT_TRUE(Transform(old, &response).ok());
  EXPECT_EQ(response.version().number(), 1);
}

TEST_F(TransformRpcTest, AnotherDigestThanExpectedIsAFailedPrecondition) {
  const v1::Version version = MustBuild();
  v1::TransformRequest request = Request(UniformExamples(1, 3));
  request.set_expected_digest(version.ref().digest());
  v1::TransformResponse response;
  EXPECT_TRUE(Transform(request, &response).ok());
  request.set_expected_digest(std::string(64, '0'));
  const grpc::Status status = Transform(request, &response);
  EXPECT_THAT(status, IsError(Code::FAILED_PRECONDITION, _, "expected_digest"));
  EXPECT_EQ(FactsOf(status).metadata.at("actual"), version.ref().digest());
}

TEST_F(TransformRpcTest, FeaturesThatDoNotFitAMessageAreRefusedWithTheRowsThatWould) {
  Stop();
  options_.max_message_bytes = 64 * 1024;
  Start();
  MustBuild("letter", "f1(landmarks=30)");  // a row has 12 bytes, its features 120
  const grpc::Status status = Transform(Request(UniformExamples(600, 3)));
  EXPECT_EQ(status.error_code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ(FactsOf(status).metadata.at("limit"), "537");  // (65536 - 1024) / 120
  EXPECT_EQ(MustTransform(UniformExamples(537, 3)).size(), 537 * 120);
  // Here even the request is larger than a message may be.
  EXPECT_THAT(Transform(Request(UniformExamples(6000, 3))),
              IsError(Code::RESOURCE_EXHAUSTED, _, _, HasSubstr("65536")));
}

TEST_F(TransformRpcTest, AnExpiredDeadlineIsAnswered) {
  MustBuild();
  // The deadline has passed by the scheduler's clock, but not by the client's. If it had passed for
  // the client, gRPC would answer without asking the server.
  seconds_ahead_ = 3600;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(10));
  v1::TransformResponse response;
  EXPECT_THAT(
      transforms_->Transform(&context, Request(UniformExamples(1, 3)), &response),
      IsError(Code::DEADLINE_EXCEEDED, _, _, HasSubstr("before the features were computed")));
}

TEST_F(TransformRpcTest, ADamagedArtifactIsDataLossAndOthersServeOn) {
  const v1::Version good = MustBuild("good", "f2(landmarks=5)");
  const v1::Version bad = MustBuild("bad", "f2(landmarks=6)");
  folder_.DamageBlob(bad.ref().digest());
  v1::TransformRequest request = Request(UniformExamples(1, 3));
  v1::TransformResponse response;
  request.set_reference("bad");
  EXPECT_EQ(Transform(request, &response).error_code(), Code::DATA_LOSS);
  request.set_reference("good");
  EXPECT_TRUE(Transform(request, &response).ok());
}

TEST_F(TransformRpcTest, WhereTheServersFilesAreIsForItsLogAlone) {
  const std::string digest = MustBuild("bad").ref().digest();
  folder_.DamageBlob(digest);
  v1::TransformRequest request = Request(UniformExamples(1, 3));
  request.set_reference("bad");
  const grpc::Status status = Transform(request);
  EXPECT_THAT(status, IsError(Code::DATA_LOSS, _, _, HasSubstr(digest)));
  EXPECT_EQ(FactsOf(status).metadata["digest"], digest);
  EXPECT_THAT(status.error_message() + status.error_details(), Not(HasSubstr(folder_.path())));
  EXPECT_THAT(LoggedErrors(), HasSubstr(folder_.path()));
  EXPECT_THAT(LoggedErrors(), HasSubstr("version_load_failed mapping=bad version=1 "));
}

class TransformStreamTest : public TransformRpcTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::TransformRequest, v1::TransformResponse>;

  static v1::TransformRequest First(const v1::Examples& examples) {
    return TransformOf("letter", examples);
  }
  static v1::TransformRequest Next(const v1::Examples& examples) {
    v1::TransformRequest request;
    *request.mutable_examples() = examples;
    return request;
  }

  grpc::ClientContext context_;
};

TEST_F(TransformStreamTest, AnswersInOrderAndNamesTheVersionOnce) {
  MustBuild();
  const auto stream = transforms_->TransformStream(&context_);
  constexpr int kRequests = 500;
  // Sizes vary, so that later requests are ready before earlier ones.
  const auto examples = [](int i) { return UniformExamples(1 + (i * 37) % 300, 3, i); };
  std::thread writer([&] {
    for (int i = 0; i < kRequests; ++i) {
      ASSERT_TRUE(stream->Write(i == 0 ? First(examples(i)) : Next(examples(i))));
    }
    stream->WritesDone();
  });
  v1::TransformResponse response;
  int answered = 0;
  for (; stream->Read(&response); ++answered) {
    EXPECT_EQ(response.has_version(), answered == 0);
    if (answered % 50 == 0) {
      EXPECT_EQ(response.features().float32_le(), MustTransform(examples(answered)));
    }
    EXPECT_EQ(response.features().rows(), examples(answered).dense().rows());
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answered, kRequests);
}

TEST_F(TransformStreamTest, AVersionPublishedLaterDoesNotChangeIt) {
  MustBuild("letter", "f1(landmarks=5)");
  const auto stream = transforms_->TransformStream(&context_);
  v1::TransformResponse response;
  ASSERT_TRUE(stream->Write(First(UniformExamples(1, 3))));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.version().number(), 1);
  MustBuild("letter", "f1(landmarks=6)");
  ASSERT_TRUE(stream->Write(Next(UniformExamples(1, 3))));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.features().columns(), 5);
  ExpectEnds(*stream);
}

TEST_F(TransformStreamTest, AnErrorEndsTheStreamAfterTheAnswersBeforeItAndNamesTheRequest) {
  MustBuild();
  const auto stream = transforms_->TransformStream(&context_);
  stream->Write(First(UniformExamples(1, 3)));
  stream->Write(Next(UniformExamples(2, 3)));
  stream->Write(Next(UniformExamples(1, 4)));  // request 2
  stream->Write(Next(UniformExamples(1, 3)));
  stream->WritesDone();
  v1::TransformResponse response;
  int answered = 0;
  while (stream->Read(&response)) ++answered;
  EXPECT_EQ(answered, 2);
  const grpc::Status status = stream->Finish();
  EXPECT_THAT(status,
              IsError(Code::INVALID_ARGUMENT, _, "examples.dense.columns", HasSubstr("request 2")));
  EXPECT_EQ(FactsOf(status).metadata.at("request"), "2");
}

TEST_F(TransformStreamTest, AnEmptyStreamIsOk) {
  const auto stream = transforms_->TransformStream(&context_);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TransformStreamTest, AClientThatDoesNotReadCanVanish) {
  MustBuild("letter", "f1(landmarks=40)");
  const auto stream = transforms_->TransformStream(&context_);
  ASSERT_TRUE(stream->Write(First(UniformExamples(1, 3))));
  // Writes block once flow control allows no more bytes. They end when the call is cancelled.
  std::thread writer([&] {
    while (stream->Write(Next(UniformExamples(1000, 3)))) {
    }
  });
  v1::TransformResponse response;
  ASSERT_TRUE(stream->Read(&response));
  context_.TryCancel();
  writer.join();
  EXPECT_EQ(stream->Finish().error_code(), Code::CANCELLED);
  // The server still serves.
  EXPECT_FALSE(MustTransform(UniformExamples(1, 3)).empty());
}

}  // namespace
}  // namespace phimap::testing
