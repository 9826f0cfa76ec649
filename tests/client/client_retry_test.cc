// Tests which unary calls are repeated after a failure, and how a client uses a target that lists
// several servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/client.h"
#include "client/cpp/grpc_status.h"
#include "core/status/error.h"
#include "phimap/rpc/error_details.pb.h"
#include "proto/chunk/artifact_chunk.h"
#include "tests/client/scripted_server.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

const grpc::Status kBroken{grpc::StatusCode::UNAVAILABLE, "Socket closed"};

grpc::Status ShuttingDown(int delay_ms = 0) {
  return Refusal(grpc::StatusCode::UNAVAILABLE, "SERVER_SHUTTING_DOWN", delay_ms);
}

RowBlock HalfRow() { return MakeRowBlock(std::vector<float>{0.5f}, 1); }

class ClientRetryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect(int attempts = 8) {
    // Without backoff, so that tests do not wait.
    return *Client::Connect(server_.target(), {.retry = {.max_attempts = attempts,
                                                         .initial_backoff = absl::ZeroDuration()}});
  }

  // Makes the next calls fail with these errors, one error per call. Later calls succeed.
  void FailWith(std::vector<grpc::Status> failures) {
    const auto next = [this, failures] {
      const size_t call = calls_++;
      return call < failures.size() ? failures[call] : grpc::Status::OK;
    };
    server_.transform = [next](const v1::TransformRequest& request,
                               v1::TransformResponse& response) {
      *response.mutable_features() = request.examples().dense();
      return next();
    };
    server_.list_mappings = [next](const auto&, auto&) { return next(); };
    server_.set_alias = [next](const auto&, auto&) { return next(); };
    server_.delete_version = [next](const auto&, auto&) { return next(); };
  }

  std::atomic<size_t> calls_{0};
  ScriptedServer server_;
};

TEST_F(ClientRetryTest, ATransformIsMadeAgainWhileTheServerIsUnavailable) {
  FailWith({kBroken, ShuttingDown(), kBroken});
  EXPECT_TRUE(Connect()->Transform("m", HalfRow()).ok());
  EXPECT_EQ(calls_, 4);
}

TEST_F(ClientRetryTest, SoIsARead) {
  FailWith({kBroken, kBroken});
  EXPECT_TRUE(Connect()->ListMappings().ok());
  EXPECT_EQ(calls_, 3);
}

// The second attempt delivers a chunk before it fails, so there must be no third attempt.
TEST_F(ClientRetryTest, AnExportIsMadeAgainUntilItsFirstByteAndNotAfter) {
  server_.export_artifact = [this](grpc::ServerWriter<v1::ArtifactChunk>& writer) {
    if (calls_++ == 0) return kBroken;
    v1::ArtifactChunk chunk;
    FillChunk(0, "abc", chunk);
    chunk.set_artifact_size_bytes(6);
    writer.Write(chunk);
    return kBroken;
  };
  std::string received;
  const absl::Status status = Connect()
                                  ->Export("m",
                                           [&](absl::string_view bytes) {
                                             received += std::string(bytes);
                                             return absl::OkStatus();
                                           })
                                  .status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(received, "abc");
  EXPECT_EQ(calls_, 2);
}

TEST_F(ClientRetryTest, FiveAttemptsAreMadeAndNoMore) {
  FailWith(std::vector<grpc::Status>(9, kBroken));
  EXPECT_EQ(Connect()->Transform("m", HalfRow()).status(), absl::UnavailableError("Socket closed"));
  EXPECT_EQ(calls_, 5);
}

TEST_F(ClientRetryTest, OneAttemptIsMadeIfThePolicySaysSo) {
  FailWith({kBroken, kBroken});
  EXPECT_FALSE(Connect(/*attempts=*/1)->ListMappings().ok());
  EXPECT_EQ(calls_, 1);
}

// A change that may have been made is sent again with its id, by which the store makes it once.
TEST_F(ClientRetryTest, AChangeKeepsItsIdAndTheNextOneHasAnother) {
  FailWith({kBroken, Refusal(grpc::StatusCode::UNAVAILABLE, "COMMIT_IN_DOUBT", 1), ShuttingDown(),
            grpc::Status::OK, kBroken});
  std::vector<std::string> ids;
  server_.set_alias = [&, next = server_.set_alias](const v1::SetAliasRequest& request,
                                                    v1::Alias& alias) {
    ids.push_back(request.operation_id());
    return next(request, alias);
  };
  server_.delete_version = [&, next = server_.delete_version](
                               const v1::DeleteVersionRequest& request,
                               v1::DeleteVersionResponse& response) {
    ids.push_back(request.operation_id());
    return next(request, response);
  };
  const auto client = Connect();
  EXPECT_TRUE(client->SetAlias("m@1", "prod").ok());
  EXPECT_TRUE(client->DeleteVersion("m@1").ok());
  ASSERT_EQ(ids.size(), 6);
  EXPECT_EQ(ids[0].size(), 36);
  EXPECT_THAT(std::vector<std::string>(ids.begin() + 1, ids.begin() + 4), Each(ids[0]));
  EXPECT_EQ(ids[4], ids[5]);
  EXPECT_NE(ids[0], ids[4]);
}

TEST_F(ClientRetryTest, NoOtherCodeCarriesTheReason) {
  FailWith({Refusal(grpc::StatusCode::ABORTED, "SERVER_SHUTTING_DOWN", 1)});
  EXPECT_TRUE(absl::IsAborted(Connect()->SetAlias("m@1", "prod").status()));
  EXPECT_EQ(calls_, 1);
}

TEST_F(ClientRetryTest, ErrorsOfTheCallerAreFinal) {
  FailWith({{grpc::StatusCode::INVALID_ARGUMENT, "no"}});
  EXPECT_FALSE(Connect()->ListMappings().ok());
  EXPECT_EQ(calls_, 1);
}

TEST_F(ClientRetryTest, TheDelayThatTheServerAsksForIsWaited) {
  FailWith({ShuttingDown(50)});
  const absl::Time before = absl::Now();
  EXPECT_TRUE(Connect()->Transform("m", HalfRow()).ok());
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(50));
}

TEST_F(ClientRetryTest, NobodyWaitsBeyondTheDeadline) {
  FailWith({Refusal(grpc::StatusCode::UNAVAILABLE, "SERVER_SHUTTING_DOWN", 900), grpc::Status::OK});
  const absl::Time before = absl::Now();
  const absl::Status status =
      Connect()->Transform("m", HalfRow(), {.timeout = absl::Milliseconds(800)}).status();
  EXPECT_EQ(testing::ReasonOf(status), "SERVER_SHUTTING_DOWN") << status;
  EXPECT_LT(absl::Now() - before, absl::Milliseconds(800));
  EXPECT_EQ(calls_, 1);
}

TEST(RetryDelayTest, TheBackoffIsWaitedLessAFifthAtMost) {
  const RetryPolicy policy{.max_attempts = 2, .initial_backoff = absl::Milliseconds(50)};
  absl::Time last;
  absl::Duration waited;
  CallWithRetries(policy, absl::InfiniteFuture(), [&] {
    waited = absl::Now() - last;
    last = absl::Now();
    return absl::UnavailableError("gone");
  }).IgnoreError();
  EXPECT_GE(waited, absl::Milliseconds(40));
}

// Two servers with the same answers, and a target that lists both addresses.
class SeveralServersTest : public ::testing::Test {
 protected:
  SeveralServersTest() {
    for (ScriptedServer* server : {&first_, &second_}) {
      server->transform = [](const v1::TransformRequest& request, v1::TransformResponse& response) {
        *response.mutable_features() = request.examples().dense();
        return grpc::Status::OK;
      };
    }
  }

  ScriptedServer first_, second_;
  const std::string target_ = absl::StrCat("ipv4:", first_.target(), ",", second_.target());
};

TEST_F(SeveralServersTest, TakeTheCallsInTurn) {
  const auto client = *Client::Connect(target_, {});
  // The first calls may all go to the server to which the client connected first.
  while (first_.peers().empty() || second_.peers().empty()) {
    ASSERT_TRUE(client->Transform("m", HalfRow()).ok());
  }
  const size_t before = first_.peers().size();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client->Transform("m", HalfRow()).ok());
  EXPECT_EQ(first_.peers().size() - before, 5);
}

TEST_F(SeveralServersTest, OneThatStopsIsLeftOut) {
  const auto client = *Client::Connect(target_, {});
  while (first_.peers().empty() || second_.peers().empty()) {
    ASSERT_TRUE(client->Transform("m", HalfRow()).ok());
  }
  first_.Stop();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client->Transform("m", HalfRow()).ok());
}

TEST(TargetTest, OfSeveralServersIsChecked) {
  for (const char* target :
       {"ipv4:10.0.0.1:7450,10.0.0.2:7450", "ipv6:[::1]:7450,[::2]:7450", "dns:///phimap:7450"}) {
    EXPECT_TRUE(Client::Connect(target, {}).ok()) << target;
  }
  for (const char* target : {"ipv4:", "ipv4:10.0.0.1:7450,", "ipv4:10.0.0.1,10.0.0.2:7450",
                             "dns:///phimap", "10.0.0.1:0,10.0.0.2:65536"}) {
    EXPECT_EQ(Client::Connect(target, {}).status().code(), StatusCode::kInvalidArgument) << target;
  }
}

TEST(TargetTest, ATokenGoesInTheClearToLoopbackAddressesAlone) {
  const std::string token = "secret-token-0123456789";
  EXPECT_TRUE(Client::Connect("ipv4:127.0.0.1:1,127.0.0.2:1", {.token = token}).ok());
  EXPECT_TRUE(Client::Connect("ipv6:[::1]:1", {.token = token}).ok());
  EXPECT_FALSE(Client::Connect("ipv4:127.0.0.1:1,10.0.0.1:1", {.token = token}).ok());
  EXPECT_FALSE(Client::Connect("dns:///phimap:1", {.token = token}).ok());
}

}  // namespace
}  // namespace phimap::client
