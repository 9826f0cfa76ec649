#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "core/status/error.h"
#include "phimap/rpc/error_details.pb.h"
#include "tests/client/scripted_server.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

constexpr int32_t kColumns = 4;

RowBlock Rows(int32_t rows) {
  std::vector<double> values(size_t{kColumns} * rows);
  std::iota(values.begin(), values.end(), 0.0);
  return MakeRowBlock(absl::Span<const double>(values), kColumns);
}

// An endless source that cannot be rewound. Next never waits, so the client stops reading only when
// the stream ends.
class EndlessRows : public RowSource {
 public:
  int32_t columns() const override { return kColumns; }
  absl::StatusOr<ExampleBlock> Next(const BlockLimits&) override { return Rows(1000); }
};

// A source that behaves like a pipe to which nobody writes: Next returns only when it is
// interrupted.
class SilentRows : public RowSource {
 public:
  int32_t columns() const override { return kColumns; }
  absl::StatusOr<ExampleBlock> Next(const BlockLimits&) override {
    waiting.set_value();
    interrupted_.get_future().wait();
    return absl::CancelledError("interrupted");
  }
  void Interrupt() override {
    if (!set_.exchange(true)) interrupted_.set_value();
  }
  std::promise<void> waiting;

 private:
  std::atomic<bool> set_ = false;
  std::promise<void> interrupted_;
};

// A source that can be read only once.
class OnceRows : public MemoryRowSource {
 public:
  using MemoryRowSource::MemoryRowSource;
  bool CanRewind() const override { return false; }
};

void Accept(BuildStream& stream, bool attached) {
  v1::BuildResponse event;
  event.mutable_accepted()->set_attached(attached);
  stream.Write(event);
}

void SendVersion(BuildStream& stream, int64_t number) {
  v1::BuildResponse event;
  event.mutable_version()->mutable_ref()->set_name("m");
  event.mutable_version()->mutable_ref()->set_number(number);
  stream.Write(event);
}

// Summary of the messages that a client sent on one stream.
struct Received {
  std::string build_id;
  int64_t rows = 0;
  int64_t finish_row_count = -1;
};

Received ReadAll(BuildStream& stream) {
  Received received;
  v1::BuildRequest request;
  while (stream.Read(&request)) {
    if (request.has_spec()) received.build_id = request.spec().build_id();
    if (request.has_examples()) received.rows += request.examples().dense().rows();
    if (request.has_finish()) received.finish_row_count = request.finish().row_count();
  }
  return received;
}

// A server that accepts the build, reads all that the client sends, and ends the call with `end`,
// after version `number` unless it is 0.
BuildScript Reads(Received* received, int64_t number, const grpc::Status& end,
                  bool attached = false) {
  return [=](BuildStream& stream) {
    Accept(stream, attached);
    const Received all = ReadAll(stream);
    if (received != nullptr) *received = all;
    if (number != 0) SendVersion(stream, number);
    return end;
  };
}

class BuildTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect() {
    // Without backoff, so that tests do not wait.
    return *Client::Connect(server_.target(), {.retry = {.initial_backoff = absl::ZeroDuration()}});
  }
  const BuildOptions options_{.name = "m", .spec = "f1(landmarks=2)", .kernel = "linear()"};
  const grpc::Status broken_{grpc::StatusCode::UNAVAILABLE, "Socket closed"};
  ScriptedServer server_;
};

TEST_F(BuildTest, SendsAllRowsAndTheirCountAndReturnsTheVersion) {
  Received received;
  const StopAtEnd stop(server_);
  server_.builds = {Reads(&received, 7, grpc::Status::OK)};
  MemoryRowSource rows(Rows(100'000));  // these rows fill several blocks
  BuildProgress last;
  const auto version =
      Connect()->Build(options_, rows, [&](const BuildProgress& progress) { last = progress; });
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->ref().number(), 7);
  EXPECT_EQ(received.rows, 100'000);
  EXPECT_EQ(received.finish_row_count, 100'000);
  EXPECT_EQ(received.build_id.size(), 36);
  EXPECT_EQ(last.rows_sent, 100'000);
  EXPECT_TRUE(last.sent);
}

TEST_F(BuildTest, ErrorOfARowSurfacesWithItsDetailsWhileRowsAreStillBeingSent) {
  const StopAtEnd stop(server_);
  server_.builds = {[](BuildStream& stream) {
    Accept(stream, false);
    v1::BuildRequest request;
    stream.Read(&request);
    stream.Read(&request);
    rpc::BadRequest bad_request;
    bad_request.add_field_violations()->set_field("examples.dense.rows[3].columns[1]");
    rpc::Status details;
    Pack(bad_request, "BadRequest", details);
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        "examples.dense.rows[3].columns[1]: expected a finite value, got nan",
                        details.SerializeAsString());
  }};
  EndlessRows rows;
  EXPECT_THAT(
      Connect()->Build(options_, rows).status(),
      testing::IsError(StatusCode::kInvalidArgument, _, "examples.dense.rows[3].columns[1]",
                       "examples.dense.rows[3].columns[1]: expected a finite value, got nan"));
}

TEST_F(BuildTest, ErrorOfTheServerSurfacesWhileTheSourceWaitsForInput) {
  SilentRows rows;
  const StopAtEnd stop(server_);
  server_.builds = {[&](BuildStream& stream) {
    Accept(stream, false);
    rows.waiting.get_future().wait();
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many builds");
  }};
  EXPECT_EQ(Connect()->Build(options_, rows).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(BuildTest, ErrorOfTheSourceEndsTheBuildAndIsReturnedAsItIs) {
  class BadRows : public EndlessRows {
    absl::StatusOr<ExampleBlock> Next(const BlockLimits&) override {
      return absl::InvalidArgumentError("rows.csv, line 9");
    }
  };
  Received received;
  const StopAtEnd stop(server_);
  server_.builds = {Reads(&received, 0, grpc::Status::CANCELLED)};
  BadRows rows;
  EXPECT_EQ(Connect()->Build(options_, rows).status(),
            absl::InvalidArgumentError("rows.csv, line 9"));
  EXPECT_LE(received.finish_row_count, 0);
}

TEST_F(BuildTest, AttachesWithTheSameIdWhenTheConnectionBreaksAfterFinish) {
  Received first, second;
  const StopAtEnd stop(server_);
  server_.builds = {Reads(&first, 0, broken_),
                    Reads(&second, 3, grpc::Status::OK, /*attached=*/true)};
  OnceRows rows(Rows(10));
  const auto version = Connect()->Build(options_, rows).value();
  EXPECT_EQ(version.ref().number(), 3);
  EXPECT_EQ(first.rows, 10);
  EXPECT_EQ(second.rows, 0);
  EXPECT_EQ(first.build_id, second.build_id);
}

TEST_F(BuildTest, WaitsForTheServerToLetGoOfTheBrokenStream) {
  const StopAtEnd stop(server_);
  server_.builds = {
      Reads(nullptr, 0, broken_),
      [&](BuildStream&) { return grpc::Status(grpc::StatusCode::ABORTED, "its stream is open"); },
      Reads(nullptr, 3, grpc::Status::OK, /*attached=*/true)};
  OnceRows rows(Rows(10));
  EXPECT_TRUE(Connect()->Build(options_, rows).ok());
  EXPECT_EQ(server_.build_attempts, 3);
}

TEST_F(BuildTest, SendsAllRowsAgainWhenTheServerLostTheBuildAndTheSourceCanRewind) {
  Received second;
  const StopAtEnd stop(server_);
  server_.builds = {[&](BuildStream& stream) {
                      Accept(stream, false);
                      v1::BuildRequest request;
                      stream.Read(&request);
                      stream.Read(&request);
                      return broken_;  // breaks before `finish`
                    },
                    Reads(&second, 4, grpc::Status::OK)};
  MemoryRowSource rows(Rows(200'000));
  EXPECT_TRUE(Connect()->Build(options_, rows).ok());
  EXPECT_EQ(second.rows, 200'000);
  EXPECT_EQ(second.finish_row_count, 200'000);
}

TEST_F(BuildTest, SaysSoWhenTheServerLostTheBuildAndTheInputIsGone) {
  const StopAtEnd stop(server_);
  server_.builds = {Reads(nullptr, 0, broken_), Reads(nullptr, 0, grpc::Status::CANCELLED)};
  OnceRows rows(Rows(10));
  EXPECT_THAT(Connect()->Build(options_, rows).status(),
              testing::IsError(StatusCode::kAborted, _, _, HasSubstr("start the build again")));
}

TEST_F(BuildTest, GivesUpAfterTheLastAttempt) {
  const StopAtEnd stop(server_);
  const BuildScript breaks = [&](BuildStream& stream) {
    Accept(stream, true);
    return broken_;
  };
  const StopAtEnd stop_2(server_);
  server_.builds.assign(100, breaks);
  auto client = *Client::Connect(
      server_.target(), {.retry = {.max_attempts = 3, .initial_backoff = absl::ZeroDuration()}});
  MemoryRowSource rows(Rows(10));
  EXPECT_EQ(client->Build(options_, rows).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(server_.build_attempts, 3);
}

TEST_F(BuildTest, DoesNotRetryAServerThatNeverAccepted) {
  const StopAtEnd stop(server_);
  server_.builds.assign(2, [&](BuildStream&) { return broken_; });
  MemoryRowSource rows(Rows(10));
  EXPECT_EQ(Connect()->Build(options_, rows).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(server_.build_attempts, 1);
}

TEST_F(BuildTest, ABuildThatAServerThatStopsDidNotBeginIsBegunAgainWithAllRowsOfAPipe) {
  const grpc::Status stops = Refusal(grpc::StatusCode::UNAVAILABLE, "SERVER_SHUTTING_DOWN");
  Received received;
  const StopAtEnd stop(server_);
  server_.builds = {[&](BuildStream&) { return stops; }, [&](BuildStream&) { return stops; },
                    Reads(&received, 6, grpc::Status::OK)};
  OnceRows rows(Rows(10));
  const auto version = Connect()->Build(options_, rows).value();
  EXPECT_EQ(received.finish_row_count, 10);
}

TEST_F(BuildTest, VersionThatWasSentCountsEvenIfTheStreamBreaksBehindIt) {
  const StopAtEnd stop(server_);
  server_.builds = {Reads(nullptr, 5, broken_)};
  MemoryRowSource rows(Rows(10));
  EXPECT_TRUE(Connect()->Build(options_, rows).ok());
}

TEST_F(BuildTest, CancelEndsTheCallAndTheServersBuild) {
  SilentRows rows;
  std::string cancelled_id;
  const StopAtEnd stop(server_);
  server_.builds = {Reads(nullptr, 0, grpc::Status::CANCELLED)};
  const StopAtEnd stop_2(server_);
  server_.cancel_build = [&](const v1::CancelBuildRequest& request, v1::BuildJob&) {
    cancelled_id = request.build_id();
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such build");
  };
  CancelToken cancel;
  auto canceller = std::async([&] {
    rows.waiting.get_future().wait();
    cancel.Cancel();
  });
  BuildOptions options = options_;
  options.build_id = "11111111-2222-4333-8444-555555555555";
  const absl::Status status = Connect()->Build(options, rows, nullptr, &cancel).status();
  EXPECT_EQ(status, absl::CancelledError("the build was cancelled"));
  EXPECT_EQ(cancelled_id, options.build_id);
}

TEST_F(BuildTest, CancelOfAPublishedBuildNamesTheVersion) {
  const StopAtEnd stop(server_);
  server_.builds = {Reads(nullptr, 0, grpc::Status::CANCELLED)};
  const StopAtEnd stop_2(server_);
  server_.cancel_build = [&](const v1::CancelBuildRequest&, v1::BuildJob& job) {
    job.set_state(v1::BuildJob::STATE_DONE);
    job.mutable_version()->set_name("m");
    job.mutable_version()->set_number(9);
    return grpc::Status::OK;
  };
  CancelToken cancel;
  cancel.Cancel();
  MemoryRowSource rows(Rows(10));
  EXPECT_THAT(
      Connect()->Build(options_, rows, nullptr, &cancel).status(),
      testing::IsError(StatusCode::kCancelled, _, _, HasSubstr("m@9 was already published")));
}

TEST_F(BuildTest, ListMappingsFollowsAllPages) {
  const StopAtEnd stop(server_);
  server_.list_mappings = [](const v1::ListMappingsRequest& request,
                             v1::ListMappingsResponse& response) {
    response.add_mappings()->set_name(request.page_token().empty() ? "a" : "b");
    if (request.page_token().empty()) response.set_next_page_token("next");
    return grpc::Status::OK;
  };
  const auto mappings = Connect()->ListMappings().value();
  ASSERT_EQ(mappings.size(), 2);
  EXPECT_EQ(mappings[1].name(), "b");
}

TEST(ConnectTest, RefusesTargetsWithoutAPort) {
  for (const char* target : {"", "host", "host:", ":7450", "host:0", "host:65536", "unix:"}) {
    EXPECT_EQ(Client::Connect(target, {}).status().code(), StatusCode::kInvalidArgument) << target;
  }
  for (const char* target : {"host:7450", "[::1]:7450", "unix:/run/phimap.sock"}) {
    EXPECT_TRUE(Client::Connect(target, {}).ok()) << target;
  }
}

TEST(SpecTextTest, NumbersReadBackEqualAndOnlyWordsAndNumbersAreTaken) {
  EXPECT_EQ(*SpecText("f2", {}), "f2()");
  EXPECT_EQ(*SpecText("f2", {{"landmarks", 500}, {"policy", "uniform"}, {"x", true}}),
            "f2(landmarks=500, policy=uniform, x=true)");
  EXPECT_EQ(*SpecText("rbf", {{"gamma", 0.1}, {"b", 1e-300}, {"c", 1.0 / 3}}),
            "rbf(gamma=0.1, b=1e-300, c=0.3333333333333333)");
  for (const SpecValue& value : {SpecValue("a, b=1"), SpecValue(""), SpecValue(std::nan(""))}) {
    const absl::Status refused = SpecText("f2", {{"policy", value}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused));
    EXPECT_EQ(testing::FieldOf(refused), "policy");
  }
}

}  // namespace
}  // namespace phimap::client
