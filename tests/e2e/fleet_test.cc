// Tests two servers that share one PostgreSQL database. Each must serve the other's changes.
#include "tests/e2e/fleet.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

using Clock = std::chrono::steady_clock;

class FleetTest : public ::testing::Test {
 protected:
  Fleet fleet_{phimap::testing::PostgresServer::Shared()};
};

// When an alias is moved on one server, the other server must serve its new version within a
// second. After every tenth move, the test cuts all connections of both servers to the database,
// including those that listen for changes.
TEST_F(FleetTest, AnAliasMovedAtOneIsServedByTheOtherWithinASecond) {
  constexpr int kMoves = 1000;
  const auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  const auto mover = one->Connect();
  const auto reader = two->Connect();
  BuildVersions(*mover, "letters", 2);
  ASSERT_TRUE(mover->SetAlias("letters@1", "prod", "none").ok());
  for (int number : {1, 2}) {
    EXPECT_EQ(Answering(*reader, absl::StrCat("letters@", number)), number);
  }
  std::chrono::duration<double> longest{0};
  for (int move = 1; move <= kMoves; ++move) {
    const int64_t target = 1 + move % 2;
    const auto moved = mover->SetAlias(absl::StrCat("letters@", target), "prod", "*").value();
    if (move % 10 == 0) fleet_.CutConnections();
    const Clock::time_point start = Clock::now();
    while (Answering(*reader, "letters@prod") != target && !HasFailure()) {
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    longest = std::max(longest, took);
    ASSERT_LE(took.count(), 1) << "move " << move;
  }
  std::cout << "longest of " << kMoves << ": " << longest.count() * 1000 << " ms\n";
}

TEST_F(FleetTest, WhatOneMadeTheOtherServesWithTheSameBits) {
  const auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  const auto first = one->Connect();
  const auto second = two->Connect();
  BuildVersions(*first, "letters", 1);
  // Server two finds the new mapping at once, because a server looks up an unknown name in the
  // database.
  const auto there = second->Transform("letters", FleetRow()).value();
  const auto here = first->Transform("letters", FleetRow()).value();
  EXPECT_EQ(there.version.SerializeAsString(), here.version.SerializeAsString());
  EXPECT_EQ(there.features.values_le, here.features.values_le);
}

TEST_F(FleetTest, WhatOneMadeTheOtherFindsByItsDigest) {
  const auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  const auto first = one->Connect();
  const auto second = two->Connect();
  BuildVersions(*first, "letters", 2);
  const auto version = first->GetVersion("letters@1").value();
  const std::string& digest = version.ref().digest();
  for (const std::string& digits : {digest, digest.substr(0, 7)}) {
    EXPECT_EQ(Answering(*second, "letters@sha256:" + digits), 1);
  }
  ASSERT_TRUE(
      first->SetAlias(absl::StrCat("letters", "@sha256:", digest.substr(0, 12)), "prod").ok());
  ASSERT_TRUE(first->DeleteAlias("letters", "prod").ok());
  ASSERT_TRUE(first->DeleteVersion("letters@1").ok());
  const Clock::time_point start = Clock::now();
  absl::Status status;
  do {
    status = second->Transform("letters@sha256:" + digest, FleetRow()).status();
  } while (status.ok() && Clock::now() - start < std::chrono::seconds(1));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

TEST_F(FleetTest, WhatOneDeletedTheOtherDoesNotServe) {
  const auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  const auto first = one->Connect();
  const auto second = two->Connect();
  BuildVersions(*first, "letters", 2);
  EXPECT_EQ(Answering(*second, "letters@1"), 1);
  ASSERT_TRUE(first->DeleteVersion("letters@1").ok());
  const Clock::time_point start = Clock::now();
  absl::Status status;
  do {
    status = second->Transform("letters@1", FleetRow()).status();
  } while (status.ok() && Clock::now() - start < std::chrono::seconds(1));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  ASSERT_TRUE(first->DeleteMapping("letters").ok());
  EXPECT_TRUE(absl::IsNotFound(second->GetMapping("letters").status()));
}

// A restarted server loads a version from its cache, even if the artifact is missing in the
// database.
TEST_F(FleetTest, ARestartedServerLoadsFromItsCache) {
  {
    const auto one = fleet_.Start("one");
    const auto client = one->Connect();
    BuildVersions(*client, "letters", 1);
    EXPECT_EQ(Answering(*client, "letters"), 1);
  }
  const std::string artifacts = fleet_.CacheOf("one") + "/artifacts";
  EXPECT_EQ(std::filesystem::status(artifacts).permissions(), std::filesystem::perms::owner_all);
  fleet_.postgres().Run("DELETE FROM phimap.blob_chunks", fleet_.database());
  const auto again = fleet_.Start("one");
  EXPECT_EQ(Answering(*again->Connect(), "letters"), 1);
  EXPECT_THAT(HttpGet(again->http_address(), "/metrics"), HasSubstr("\nphimap_cache_hits_total 1"));
  const auto other = fleet_.Start("two");
  EXPECT_TRUE(absl::IsDataLoss(other->Connect()->Transform("letters", FleetRow()).status()));
}

TEST_F(FleetTest, ACacheIsOneServers) {
  const auto one = fleet_.Start("one");
  const ProcessResult second =
      RunProcess({PHIMAPD_BINARY, "--store=" + fleet_.uri(), "--cache_dir=" + fleet_.CacheOf("one"),
                  "--listen=127.0.0.1:0", "--http=none"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("is locked by"));
}

TEST_F(FleetTest, AStoreOfItsOwnWhereACacheWasIsWarnedOf) {
  const phimap::testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/cache");
  ServerProcess server(folder.path());
  EXPECT_THAT(server.process().ErrorsSoFar(), HasSubstr("store_is_new_beside_a_cache"));
}

TEST_F(FleetTest, FlagsThatDoNotFitAreRefusedBeforeAnythingIsDone) {
  const auto refused = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {PHIMAPD_BINARY};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProcessResult result = RunProcess(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({"--nonsense"}), StartsWith("phimapd: "));
  EXPECT_THAT(refused({}), HasSubstr("--data_dir: expected a path"));
  EXPECT_THAT(refused({"--data_dir=/x", "--cache_dir=/y"}),
              HasSubstr("--cache_dir: must not be set"));
  EXPECT_THAT(refused({"--store=mysql://x"}), HasSubstr("expected \"sqlite\" or postgresql://"));
  EXPECT_THAT(refused({"--store=postgresql://h/d"}), HasSubstr("--cache_dir: expected a path"));
  for (const char* uri : {"postgresql://u:secret@h/d", "postgresql://h/d?password=secret",
                          "postgresql://u:sec%ret@h/d"}) {
    const std::string error = refused({absl::StrCat("--store=", uri), "--cache_dir=/y"});
    EXPECT_THAT(error, HasSubstr("PGPASSFILE"));
    EXPECT_THAT(error, Not(HasSubstr("secret")));
  }
}

TEST_F(FleetTest, WithoutAStandbyItSaysSoLoudly) {
  const auto one = fleet_.Start("one");
  EXPECT_THAT(one->process().ErrorsSoFar(), HasSubstr("no_synchronous_standby"));
}

// The client's target lists both servers, and its calls alternate between them.
TEST(OwnChangesTest, AClientSeesItsOwnChangesOnEveryServer) {
  constexpr int kMoves = 200;
  Fleet fleet(phimap::testing::PostgresServer::Shared());
  const auto one = fleet.Start("one");
  const auto two = fleet.Start("two");
  const std::string both = absl::StrCat("ipv4:", one->address(), ",", two->address());
  const auto client = *client::Client::Connect(both, {});
  BuildVersions(*client, "letters", 2);
  // This client makes no changes, so its calls require no revision.
  const auto stranger = *client::Client::Connect(both, {});
  ASSERT_TRUE(client->SetAlias("letters@1", "prod").ok());
  int old_answers = 0;
  for (int move = 0; move < kMoves; ++move) {
    const int64_t version = 1 + move % 2;
    ASSERT_TRUE(client->SetAlias(absl::StrCat("letters@", version), "prod").ok());
    old_answers += Answering(*stranger, "letters@prod") != version;
    ASSERT_EQ(Answering(*client, "letters@prod"), version) << move;
  }
  // If the stranger never got an outdated answer, the test would prove nothing.
  EXPECT_GT(old_answers, 0);
  // Other ids, as after a restored backup or a failover, make all earlier revisions meaningless.
  // The client must cope with this without an error.
  fleet.postgres().Run("UPDATE phimap.changes SET id = 'another' || revision", fleet.database());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Answering(*client, "letters@prod"), 2);
  ASSERT_TRUE(client->SetAlias("letters@1", "prod").ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Answering(*client, "letters@prod"), 1);
  std::cout << old_answers << " of " << kMoves << " answers to a stranger were old\n";
}

// The servers learn about a new history at different times. A client may therefore get answers with
// revisions of the old one after answers with some of the new one.
TEST(OwnChangesTest, ManyThreadsOfOneClientSeeNoErrorWhenTheHistoryChanges) {
  constexpr int kThreads = 4;
  constexpr int kHistories = 10;
  constexpr int kCallsBetween = 40;
  Fleet fleet(phimap::testing::PostgresServer::Shared());
  const auto one = fleet.Start("one");
  const auto two = fleet.Start("two");
  const auto client =
      *client::Client::Connect(absl::StrCat("ipv4:", one->address(), ",", two->address()), {});
  BuildVersions(*client, "letters", 2);
  std::atomic<int> calls = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, alias = absl::StrCat("of-", i)] {
      for (int64_t move = 0; !over && !::testing::Test::HasFailure(); ++move) {
        const auto moved = client->SetAlias(absl::StrCat("letters@", 1 + move % 2), alias).value();
        for (int read = 0; read < 4; ++read) Answering(*client, absl::StrCat("letters@", alias));
        calls += 5;
      }
    });
  }
  for (int history = 0; history < kHistories && !::testing::Test::HasFailure(); ++history) {
    fleet.postgres().Run(
        absl::StrCat("UPDATE phimap.changes SET id = 'h", history, "i' || revision"),
        fleet.database());
    const int before = calls;
    while (calls < before + kCallsBetween && !::testing::Test::HasFailure()) {
      std::this_thread::yield();
    }
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace phimap::e2e
