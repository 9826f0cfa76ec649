// Tests the call metadata with which a client requires that every server knows at least the
// client's own changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "phimap/rpc/error_details.pb.h"
#include "proto/chunk/artifact_chunk.h"
#include "tests/client/scripted_server.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

// Returns the error that phimapd sends if a call requires a revision of another history. `asked` is
// that revision, and `now` the server's own.
grpc::Status OfAnotherHistory(const std::string& asked, const std::string& now = "") {
  std::map<std::string, std::string> metadata = {{"actual", asked}};
  if (!now.empty()) metadata["expected"] = now;
  return Refusal(grpc::StatusCode::FAILED_PRECONDITION, "REVISION_HISTORY_MISMATCH", 0, metadata);
}

// A source of two rows with different labels. Like a pipe, it can be read only once.
class TwoLabeledRows final : public LabeledRowSource {
 public:
  int32_t columns() const override { return 1; }
  absl::StatusOr<ExampleBlock> Next(const BlockLimits&) override {
    if (interrupted_) return absl::CancelledError("interrupted");
    if (read_ == 2) return ExampleBlock();
    labels_.push_back(read_ == 0 ? "a" : "b");
    return MakeRowBlock(std::vector<float>{static_cast<float>(read_++)}, 1);
  }
  std::vector<std::string> TakeLabels() override { return std::exchange(labels_, {}); }
  void Interrupt() override { interrupted_ = true; }

 private:
  int read_ = 0;
  std::atomic<bool> interrupted_ = false;
  std::vector<std::string> labels_;
};

class ClientRevisionsTest : public ::testing::Test {
 protected:
  ClientRevisionsTest() {
    client_ = *Client::Connect(server_.target(),
                               {.retry = {.max_attempts = 3, .initial_backoff = absl::Hours(1)}});
    server_.set_alias = [this](const v1::SetAliasRequest&, v1::Alias&) { return Answer(); };
    server_.transform = [this](const v1::TransformRequest& request,
                               v1::TransformResponse& response) {
      FillFeatures(request.examples().dense().rows(), *response.mutable_features());
      return Answer();
    };
    server_.transform_stream = [this](TransformStreamStream& stream) {
      const grpc::Status answer = Answer();
      v1::TransformRequest request;
      while (answer.ok() && stream.Read(&request)) {
        v1::TransformResponse response;
        FillFeatures(request.examples().dense().rows(), *response.mutable_features());
        stream.Write(response);
      }
      return answer;
    };
    server_.evaluate = [this](EvaluateStream& stream) {
      if (const grpc::Status answer = Answer(); !answer.ok()) return answer;
      v1::EvaluateRequest request;
      v1::EvaluateResponse response;
      stream.Read(&request);
      response.mutable_progress()->set_state(v1::EvaluateProgress::STATE_RECEIVING);
      stream.Write(response);
      while (stream.Read(&request) && !request.has_finish()) {
      }
      response.mutable_evaluation()->set_rows(request.finish().row_count());
      stream.Write(response);
      return grpc::Status::OK;
    };
  }

  static void FillFeatures(int32_t rows, v1::DenseRows& features) {
    features.set_rows(rows);
    features.set_columns(1);
    features.set_float32_le(std::string(static_cast<size_t>(rows) * sizeof(float), '\0'));
  }
  grpc::Status Answer() {
    const size_t call = server_.revisions_asked().size();
    if (call == meanwhile_at_) meanwhile_();
    return call >= fail_at_ && call < fail_at_ + failures_ ? failure_ : grpc::Status::OK;
  }
  absl::Status Change() { return client_->SetAlias("m@1", "prod").status(); }
  absl::Status Read() {
    return client_->Transform("m@prod", MakeRowBlock(std::vector<float>{0.5f}, 1)).status();
  }
  absl::Status ReadStream() {
    class OneRow final : public RowSource {
     public:
      int32_t columns() const override { return 1; }
      absl::StatusOr<ExampleBlock> Next(const BlockLimits&) override {
        if (std::exchange(read_, true)) return ExampleBlock();
        return MakeRowBlock(std::vector<float>{0.5f}, 1);
      }

     private:
      bool read_ = false;
    } row;
    return client_->TransformStream("m@prod", row, [](RowBlock) { return absl::OkStatus(); })
        .status();
  }

  absl::Status ReadEvaluation() {
    TwoLabeledRows rows;
    const auto evaluation = client_->Evaluate({.reference = "m@prod"}, rows);
    if (evaluation.ok()) {
      EXPECT_EQ(evaluation->rows(), 2);
    }
    return evaluation.status();
  }
  std::vector<std::function<absl::Status()>> Calls() {
    return {[this] { return Change(); }, [this] { return Read(); }, [this] { return ReadStream(); },
            [this] { return ReadEvaluation(); }};
  }

  // `failures_` calls, beginning with call number `fail_at_`, fail with the error `failure_`. Calls
  // are numbered from 1.
  size_t fail_at_ = 0;
  size_t failures_ = 0;
  grpc::Status failure_;
  // `meanwhile_` runs before the call with this number is answered.
  size_t meanwhile_at_ = 0;
  std::function<void()> meanwhile_;
  ScriptedServer server_;
  std::unique_ptr<Client> client_;
  StopAtEnd stop_{server_};
};

TEST_F(ClientRevisionsTest, AsksForWhatAChangeToldAndForWhatReadsTell) {
  server_.revisions_told = {"e:7", "e:9", "e:8", "e:10"};
  EXPECT_TRUE(Change().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_TRUE(ReadStream().ok());
  EXPECT_TRUE(Change().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(server_.revisions_asked(), ElementsAre("", "e:7", "e:9", "e:9", "e:10"));
}

TEST_F(ClientRevisionsTest, AsksForNothingThatWasNotTold) {
  EXPECT_TRUE(Change().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_TRUE(ReadStream().ok());
  EXPECT_THAT(server_.revisions_asked(), ElementsAre("", "", ""));
}

TEST_F(ClientRevisionsTest, ALargerNumberIsNewerAndNonsenseIsNot) {
  server_.revisions_told = {"e:7", "f:8", "g:2", "f", ":9", "f:x"};
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(Change().ok());
  EXPECT_THAT(server_.revisions_asked(), ElementsAre("", "e:7", "f:8", "f:8", "f:8", "f:8", "f:8"));
}

TEST_F(ClientRevisionsTest, ARefusalTellsWhereTheNewHistoryIs) {
  server_.revisions_told = {"e:7"};
  failure_ = OfAnotherHistory("e:7", "f:2");
  fail_at_ = 2;
  failures_ = 1;
  EXPECT_TRUE(Change().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(server_.revisions_asked(), ElementsAre("", "e:7", "f:2", "f:2"));
}

// The client must repeat the call at once. If it used its backoff, the test would take an hour.
TEST_F(ClientRevisionsTest, ForgetsARevisionOfAnotherHistoryAndCallsAgain) {
  std::vector<std::string> expected;
  failure_ = OfAnotherHistory("e:7");
  failures_ = 1;
  for (const auto& call : Calls()) {
    server_.revisions_told.resize(expected.size());
    server_.revisions_told.push_back("e:7");
    fail_at_ = expected.size() + 2;
    EXPECT_TRUE(Change().ok());
    const absl::Status status = call();
    EXPECT_TRUE(status.ok()) << status;
    for (const char* asked : {"", "e:7", ""}) expected.push_back(asked);
    EXPECT_EQ(server_.revisions_asked(), expected);
  }
}

// A server that refuses every call must not make the client repeat it endlessly.
TEST_F(ClientRevisionsTest, CallsAgainAFewTimesOnly) {
  failure_ = OfAnotherHistory("e:7");
  fail_at_ = 1;
  failures_ = 100;
  size_t calls = 0;
  for (const auto& call : Calls()) {
    const absl::Status status = call();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    const size_t made = server_.revisions_asked().size() - calls;
    EXPECT_GE(made, 2);
    EXPECT_LE(made, 4);
    calls += made;
  }
}

// While the read is under way, another thread makes a change, and gets a revision of the new
// history.
TEST_F(ClientRevisionsTest, ARevisionOfTheNewHistoryIsKept) {
  server_.revisions_told = {"e:7", "", "f:9"};
  meanwhile_at_ = 2;
  meanwhile_ = [this] { EXPECT_TRUE(Change().ok()); };
  server_.transform = [&, transform = server_.transform](const v1::TransformRequest& request,
                                                         v1::TransformResponse& response) {
    const bool refuse = server_.revisions_asked().size() == 2;
    const grpc::Status answer = transform(request, response);
    return refuse ? OfAnotherHistory("e:7") : answer;
  };
  EXPECT_TRUE(Change().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(server_.revisions_asked(), ElementsAre("", "e:7", "e:7", "f:9"));
}

// A server that does not know about a failover yet answers with a revision of the old history. The
// client must not take this revision for a newer one.
TEST_F(ClientRevisionsTest, ALateAnswerDoesNotBringBackAHistoryThatWasLeftBehind) {
  server_.revisions_told = {"e:7", "e:9"};
  failure_ = OfAnotherHistory("e:7");
  fail_at_ = 3;
  failures_ = 1;
  meanwhile_at_ = 2;
  meanwhile_ = [this] { EXPECT_TRUE(Change().ok()); };
  EXPECT_TRUE(Change().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(server_.revisions_asked(), ElementsAre("", "e:7", "e:7", "", ""));
}

// Answers may overtake each other. Later calls must require the newest revision of them all.
TEST_F(ClientRevisionsTest, ThreadsNeverTakeARevisionBack) {
  constexpr size_t kThreads = 4;
  constexpr size_t kChanges = 50;
  for (size_t i = 1; i <= kThreads * kChanges; ++i) {
    server_.revisions_told.push_back(absl::StrCat("e:", i));
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (size_t change = 0; change < kChanges; ++change) EXPECT_TRUE(Change().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Read().ok());
  EXPECT_EQ(server_.revisions_asked().back(), absl::StrCat("e:", kThreads * kChanges));
}

}  // namespace
}  // namespace phimap::client
