// Moves an alias repeatedly under load. No call may be lost, and no answer may mix versions. Except
// in the open-loop test, the moves are paced by the number of calls and not by time, so the tests
// merely take longer on a slow machine.
#include <atomic>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

constexpr int kRollingColumns = 4;
constexpr int kVersions = 3;
constexpr int kRollingRows = 5;
constexpr int kCallers = 4;
constexpr int kMoves = 30;
// The number of calls between two moves. In total there are over a thousand calls.
constexpr int64_t kCallsPerMove = 40;
constexpr int kStreamRows = 64;

client::RowBlock Row(int i) {
  const std::vector<float> values = {0.1f * i, -0.2f, 0.3f * i, 0.05f};
  return client::MakeRowBlock(absl::MakeConstSpan(values), kRollingColumns);
}

// The expected answers of a version. They are obtained with a reference by number, before any alias
// exists.
struct Expected {
  std::string digest;
  std::vector<std::string> features;  // features[i] belongs to Row(i)
};

class RollingAliasTest : public ::testing::Test {
 protected:
  RollingAliasTest() {
    const auto client = server_.Connect();
    for (int i = 1; i <= kVersions; ++i) {
      GeneratedRows rows(200, kRollingColumns, i);
      // All versions have the same number of features, so that a mix of versions would show only in
      // the values.
      const auto version = client
                               ->Build({.name = "letters",
                                        .spec = "f1(landmarks=20)",
                                        .kernel = "rbf(gamma=scale)",
                                        .seed = static_cast<uint64_t>(i)},
                                       rows)
                               .value();
      Expected& expected = expected_[i];
      expected.digest = version.ref().digest();
      for (int row = 0; row < kRollingRows; ++row) {
        const auto mapped = client->Transform(absl::StrCat("letters@", i), Row(row)).value();
        expected.features.push_back(mapped.features.values_le);
      }
    }
    EXPECT_NE(expected_[1].features, expected_[2].features);
    EXPECT_NE(expected_[2].features, expected_[3].features);
  }

  // Expects that the number, the digest and the features of an answer belong to the same version.
  void ExpectOneVersion(const v1::VersionRef& ref, const std::string& features, int row) {
    const auto found = expected_.find(ref.number());
    ASSERT_NE(found, expected_.end()) << ref.ShortDebugString();
    EXPECT_EQ(ref.name(), "letters");
    EXPECT_EQ(ref.digest(), found->second.digest) << ref.number();
    EXPECT_EQ(features, found->second.features[row]) << ref.number();
  }

  void Answered() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++answered_;
    }
    changed_.notify_all();
  }
  int64_t answered() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return answered_;
  }
  void AwaitAnswers(int64_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return answered_ >= count; });
  }

  // Makes one call after the other until stop_ is set. Every call must be answered.
  void Call(int first) {
    const auto client = server_.Connect();
    for (int i = first; !stop_; ++i) {
      const auto result = client->Transform("letters@prod", Row(i % kRollingRows));
      if (result.ok()) {
        ExpectOneVersion(result->version, result->features.values_le, i % kRollingRows);
      } else {
        ++lost_;
        ADD_FAILURE() << result.status();
      }
      Answered();  // also counts failures, so that the test does not hang
    }
  }

  // Opens one stream after the other until stop_ is set. All answers of a stream must come from the
  // version that answered its first request.
  void Stream() {
    const auto client = server_.Connect();
    while (!stop_) {
      std::vector<float> values;
      for (int i = 0; i < kStreamRows; ++i) {
        const client::RowBlock row = Row(i % kRollingRows);
        for (int j = 0; j < kRollingColumns; ++j)
          values.push_back(static_cast<float>(row.At(0, j)));
      }
      client::MemoryRowSource rows(
          client::MakeRowBlock(absl::MakeConstSpan(values), kRollingColumns));
      std::string features;
      const auto result = client->TransformStream("letters@prod", rows,
                                                  [&](client::RowBlock block) {
                                                    features += block.values_le;
                                                    return absl::OkStatus();
                                                  },
                                                  {.window = 4, .rows_per_request = 3});
      if (!result.ok()) {
        ++lost_;
        ADD_FAILURE() << result.status();
        return;
      }
      ++streams_;
      const size_t bytes = features.size() / kStreamRows;
      for (int i = 0; i < kStreamRows; ++i) {
        ExpectOneVersion(result->version, features.substr(i * bytes, bytes), i % kRollingRows);
      }
    }
  }

  ProcessResult Phimap(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {PHIMAP_BINARY, "--server=" + server_.address()});
    return RunProcess(arguments);
  }

  TemporaryFolder folder_;
  ServerProcess server_{folder_.path()};
  std::map<int64_t, Expected> expected_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t answered_ = 0;  // guarded by mutex_
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> lost_{0};
  std::atomic<int64_t> streams_{0};
};

TEST_F(RollingAliasTest, LosesNoCallAndNoAnswerMixesVersions) {
  ASSERT_EQ(Phimap({"alias", "set", "letters@prod", "1", "--etag=none"}).exit_code, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallers; ++i) threads.emplace_back([this, i] { Call(i); });
  threads.emplace_back([this] { Stream(); });
  const auto client = server_.Connect();
  for (int move = 1; move <= kMoves; ++move) {
    SCOPED_TRACE(move);
    AwaitAnswers(answered() + kCallsPerMove);
    const int64_t target = 1 + move % kVersions;
    // Only every tenth move uses the phimap command, because starting a process is slower.
    if (move % 10 == 0) {
      const ProcessResult set =
          Phimap({"alias", "set", "letters@prod", absl::StrCat(target), "--etag=*"});
      EXPECT_EQ(set.exit_code, 0) << set.err;
    } else {
      const auto moved = client->SetAlias(absl::StrCat("letters@", target), "prod", "*").value();
    }
    // A call that starts after the move was answered must get the new version.
    const auto after = client->Transform("letters@prod", Row(0));
    EXPECT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after.ok() ? after->version.number() : 0, target);
  }
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost_, 0);
  EXPECT_GE(answered(), kMoves * kCallsPerMove);
  EXPECT_GE(streams_, 1);
}

// In an open loop, callers do not wait for answers: they send a fixed number of calls per second.
// The test does not check how many of them are answered in time, because the machine may be busy.
TEST_F(RollingAliasTest, LosesNoCallOfAnOpenLoop) {
  const auto client = server_.Connect();
  ASSERT_TRUE(client->SetAlias("letters@1", "prod", "none").ok());
  ProcessResult load;
  std::thread caller([&] {
    load = Phimap({"bench", "letters@prod", absl::StrCat("--rate=", PHIMAP_OFFERED_RATE),
                   "--seconds=3", "--warmup=0.01", "--timeout=250", "--json"});
    stop_ = true;
  });
  int64_t moves = 0;
  while (!stop_) {
    const int64_t target = 1 + ++moves % kVersions;
    const auto moved = client->SetAlias(absl::StrCat("letters@", target), "prod", "*").value();
    for (int i = 0; i < kRollingRows; ++i) {
      const auto mapped = client->Transform("letters@prod", Row(i));
      EXPECT_TRUE(mapped.ok()) << mapped.status();
      if (!mapped.ok()) continue;
      EXPECT_EQ(mapped->version.number(), target);
      ExpectOneVersion(mapped->version, mapped->features.values_le, i);
    }
  }
  caller.join();
  ASSERT_EQ(load.exit_code, 0) << load.err;
  EXPECT_THAT(load.out, HasSubstr("\"errors\": {}"));
  EXPECT_THAT(load.out, Not(HasSubstr("\"answered\": 0,")));
  EXPECT_GE(moves, 2);
  std::cout << moves << " moves under " << load.out;
}

// After an alias has moved, the old version, to which no alias points any more, is deleted under
// load.
TEST_F(RollingAliasTest, DeletingTheVersionThatWasLeftLosesNoCall) {
  const auto client = server_.Connect();
  ASSERT_TRUE(client->SetAlias("letters@1", "prod", "none").ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallers; ++i) threads.emplace_back([this, i] { Call(i); });
  for (int64_t next = 2; next <= kVersions; ++next) {
    AwaitAnswers(answered() + kCallsPerMove);
    EXPECT_TRUE(
        absl::IsFailedPrecondition(client->DeleteVersion(absl::StrCat("letters@", next - 1))));
    EXPECT_TRUE(client->SetAlias(absl::StrCat("letters@", next), "prod", "").ok());
    EXPECT_TRUE(
        client->DeleteVersion(absl::StrCat("letters@", next - 1), /*give_up_rollback=*/true).ok());
    EXPECT_TRUE(
        absl::IsNotFound(client->Transform(absl::StrCat("letters@", next - 1), Row(0)).status()));
  }
  AwaitAnswers(answered() + kCallsPerMove);
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost_, 0);
}

}  // namespace
}  // namespace phimap::e2e
