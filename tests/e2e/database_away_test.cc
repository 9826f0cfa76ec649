// Tests a database that is unavailable, and one that fails over: servers still serve the versions
// that they know, no acknowledged change is lost, and changes work again when the database is back.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/fleet.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

using ::phimap::testing::PostgresServer;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A thread that calls Transform repeatedly. Every call must be answered.
class Caller {
 public:
  Caller(const ServerProcess& server, std::string reference)
      : client_(server.Connect()), thread_([this, reference] { Run(reference); }) {}
  ~Caller() { Stop(); }
  // Stops the thread. Returns the number of answered calls.
  int64_t Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return answered_;
  }
  int64_t failed() const { return failed_; }
  int64_t answered() const { return answered_; }

 private:
  void Run(const std::string& reference) {
    while (!stop_) {
      const auto mapped = client_->Transform(reference, FleetRow());
      if (mapped.ok()) {
        ++answered_;
      } else if (++failed_ <= 3) {
        ADD_FAILURE() << mapped.status();
      }
    }
  }

  const std::unique_ptr<client::Client> client_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> answered_{0};
  std::atomic<int64_t> failed_{0};
  std::thread thread_;
};

class DatabaseAwayTest : public ::testing::Test {
 protected:
  // Returns how long the test stops the database: 2 s by default. Releases are tested with 60 s.
  static double AwaySeconds() {
    const char* const text = std::getenv("PHIMAP_TEST_AWAY_SECONDS");
    double seconds = 2;
    EXPECT_TRUE(text == nullptr || absl::SimpleAtod(text, &seconds));
    return seconds;
  }

  PostgresServer postgres_;
  Fleet fleet_{postgres_};
};

TEST_F(DatabaseAwayTest, WhatIsKnownIsServedAndChangesWaitForTheDatabase) {
  const auto one = fleet_.Start("one");
  // The memory limit is too low for all versions that the test uses, so some versions are only in
  // the server's disk cache.
  const auto two = fleet_.Start("two", {"--max_live_bytes=40000"});
  const auto first = one->Connect();
  const auto second = two->Connect();
  BuildVersions(*first, "letters", 3);
  ASSERT_TRUE(first->SetAlias("letters@1", "prod", "none").ok());
  for (const char* reference : {"letters@1", "letters@2", "letters@3", "letters@prod"}) {
    Answering(*first, reference);
    Answering(*second, reference);
  }
  Caller warm(*one, "letters@prod");
  Caller other(*two, "letters@prod");

  postgres_.Stop();
  const Clock::time_point stopped = Clock::now();
  const auto moved = one->Connect({.max_attempts = 1})->SetAlias("letters@2", "prod", "*");
  EXPECT_TRUE(absl::IsUnavailable(moved.status())) << moved.status();
  EXPECT_THAT(std::string(moved.status().message()), HasSubstr("the store's database failed"));
  EXPECT_THAT(moved.status().ToString(), Not(HasSubstr("127.0.0.1:")));  // this is only logged
  while (SecondsSince(stopped) < AwaySeconds()) {
    for (int number = 1; number <= 3; ++number) {
      EXPECT_EQ(Answering(*second, absl::StrCat("letters@", number)), number);
    }
  }
  for (const auto& server : {one.get(), two.get()}) {
    EXPECT_GE(MetricOf(*server, "phimap_catalog_age_seconds"), AwaySeconds() - 1);
    EXPECT_GE(MetricOf(*server, "phimap_catalog_errors_total"), 1);
    EXPECT_EQ(HttpGet(server->http_address(), "/livez").substr(0, 2), "ok");
    EXPECT_EQ(HttpGet(server->http_address(), "/readyz").substr(0, 2), "ok");
  }

  postgres_.Start();
  const Clock::time_point back = Clock::now();
  absl::StatusOr<v1::Alias> set;
  do {
    set = first->SetAlias("letters@2", "prod", "*");
  } while (!set.ok() && SecondsSince(back) < 10);
  EXPECT_TRUE(set.ok()) << set.status();
  const Clock::time_point answered = Clock::now();
  while (Answering(*second, "letters@prod") != 2 && SecondsSince(answered) < 10) {
  }
  EXPECT_LE(SecondsSince(answered), 2.5);  // the server asks the database every second
  while (MetricOf(*two, "phimap_catalog_age_seconds") > 1 && SecondsSince(answered) < 10) {
  }
  EXPECT_LE(MetricOf(*two, "phimap_catalog_age_seconds"), 1);
  const std::string log = two->process().AwaitErrors("names_read_again");
  EXPECT_THAT(log, HasSubstr("names_not_read"));
  EXPECT_THAT(log.substr(log.rfind("names_not_read")), HasSubstr("names_read_again"));
  EXPECT_GT(warm.Stop(), 0);
  EXPECT_GT(other.Stop(), 0);
  EXPECT_EQ(warm.failed() + other.failed(), 0);
}

TEST_F(DatabaseAwayTest, AFailoverLosesNoAcknowledgedChangeAndNoTransform) {
  PostgresServer standby(postgres_);
  fleet_.AddStandby(standby);
  const auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  EXPECT_THAT(one->process().ErrorsSoFar(), Not(HasSubstr("no_synchronous_standby")));
  const auto first = one->Connect();
  const auto second = two->Connect();
  BuildVersions(*first, "letters", 2);
  ASSERT_TRUE(first->SetAlias("letters@1", "prod", "none").ok());
  EXPECT_EQ(Answering(*second, "letters@prod"), 1);
  Caller warm(*one, "letters@prod");
  Caller other(*two, "letters@prod");
  // A thread moves an alias back and forth, and records the etag of the last acknowledged move.
  std::atomic<bool> stop{false};
  std::string etag;
  absl::Status in_doubt;
  int64_t moves = 0;
  double longest_pause = 0;
  std::thread mover([&] {
    Clock::time_point last = Clock::now();
    for (int64_t target = 2; !stop;) {
      const auto moved = first->SetAlias(absl::StrCat("letters@", target), "moving", "");
      if (moved.ok()) {
        etag = moved->etag();
        in_doubt = absl::OkStatus();
        target = 3 - target;
        ++moves;
        longest_pause = std::max(longest_pause, SecondsSince(last));
        last = Clock::now();
      } else {
        EXPECT_TRUE(absl::IsUnavailable(moved.status())) << moved.status();
        in_doubt = moved.status();
      }
    }
  });
  const auto await_moves = [&](int64_t count) {
    const Clock::time_point start = Clock::now();
    const int64_t answered = warm.answered();
    while (warm.answered() < answered + count && SecondsSince(start) < 30) {
    }
  };
  await_moves(2000);
  postgres_.Stop();
  standby.Promote();
  const Clock::time_point promoted = Clock::now();
  absl::Status written;
  const auto patient = two->Connect();
  do {
    written = patient->SetAlias("letters@1", "after", "").status();
  } while (!written.ok() && SecondsSince(promoted) < 30);
  EXPECT_TRUE(written.ok()) << written;
  const double resumed = SecondsSince(promoted);
  EXPECT_LE(resumed, 10);
  await_moves(2000);
  stop = true;
  mover.join();
  EXPECT_GT(moves, 2);
  // The new primary must have the last acknowledged move.
  const auto mapping = second->GetMapping("letters").value();
  if (in_doubt.ok()) {
    bool found = false;
    for (const v1::Alias& alias : mapping.aliases()) found |= alias.etag() == etag;
    EXPECT_TRUE(found) << mapping.ShortDebugString();
  }
  EXPECT_GT(warm.Stop(), 0);
  EXPECT_GT(other.Stop(), 0);
  EXPECT_EQ(warm.failed() + other.failed(), 0);
  std::cout << moves << " moves, writes resumed after " << resumed << " s, longest pause "
            << longest_pause << " s\n";
}

// The server's last run may have ended in any way.
TEST_F(DatabaseAwayTest, AServerThatStartsWithoutItServesWhatItServedBefore) {
  const TemporaryFolder folder;
  const std::string audit = folder.path() + "/audit";
  auto server = fleet_.Start("one", {"--audit_log=" + audit});
  auto client = server->Connect();
  BuildVersions(*client, "letters", 3);
  ASSERT_TRUE(client->SetAlias("letters@1", "prod", "none").ok());
  ASSERT_TRUE(client->SetAlias("letters@3", "canary", "none").ok());
  for (const char* reference : {"letters@prod", "letters@canary"}) Answering(*client, reference);
  for (const bool kill : {false, true}) {
    const Clock::time_point changed = Clock::now();
    ASSERT_TRUE(client->SetAlias(absl::StrCat("letters@", kill ? 1 : 3), "prod", "*").ok());
    const int64_t prod = Answering(*client, "letters@prod");
    if (kill) {
      // Without a shutdown, the file has what was known some seconds ago.
      while (SecondsSince(changed) < 4) Answering(*client, "letters@prod");
    }
    server->process().Signal(kill ? SIGKILL : SIGTERM);
    server->process().Wait();
    server.reset();
    postgres_.Stop();
    server = fleet_.Start("one", {"--audit_log=" + audit});
    client = server->Connect();
    EXPECT_EQ(Answering(*client, "letters@prod"), prod);
    EXPECT_EQ(Answering(*client, "letters@canary"), 3);
    EXPECT_EQ(Answering(*client, "letters"), 3);
    // Versions answer a moment before the thread that warms them reports that the server is ready.
    std::string ready = HttpGet(server->http_address(), "/readyz");
    for (const Clock::time_point since = Clock::now();
         absl::StartsWith(ready, "not serving") && SecondsSince(since) < 10;) {
      ready = HttpGet(server->http_address(), "/readyz");
    }
    EXPECT_THAT(ready, HasSubstr("ok\ndegraded: "));
    EXPECT_EQ(HttpGet(server->http_address(), "/livez").substr(0, 2), "ok");
    const auto impatient = server->Connect({.max_attempts = 1});
    EXPECT_TRUE(absl::IsUnavailable(impatient->SetAlias("letters@2", "prod", "*").status()));
    EXPECT_TRUE(absl::IsUnavailable(impatient->ListMappings().status()));
    // The command line asks for nothing else than the call.
    const std::string flag = absl::StrCat("--server=", server->address());
    const ProcessResult bench =
        RunProcess({PHIMAP_BINARY, flag, "bench", "letters@prod", "--seconds=0.1", "--warmup=0"});
    EXPECT_EQ(bench.exit_code, 0) << bench.err;
    const ProcessResult mapped = RunProcess({PHIMAP_BINARY, flag, "transform", "letters@prod",
                                             "--input=-", "--output=-", "--format=csv"},
                                            "a,b,c,d\n0.1,-0.2,0.3,0.05\n");
    EXPECT_EQ(mapped.exit_code, 0) << mapped.err;
    EXPECT_THAT(mapped.err, HasSubstr("the server cannot say now which columns"));
    postgres_.Start();
    const Clock::time_point back = Clock::now();
    while (!client->SetAlias("letters@1", "prod", "*").ok() && SecondsSince(back) < 20) {
    }
    EXPECT_EQ(Answering(*client, "letters@prod"), 1);
    while (HttpGet(server->http_address(), "/readyz") != "ok\n" && SecondsSince(back) < 20) {
    }
    EXPECT_EQ(HttpGet(server->http_address(), "/readyz"), "ok\n");
    EXPECT_EQ(MetricOf(*server, "phimap_history_changes_total"), 0);
    // The audit was not read at the start, and is copied since.
    std::ifstream copied(audit);
    std::string newest;
    for (std::string line; std::getline(copied, line);) newest = line;
    EXPECT_THAT(newest, HasSubstr("\"alias\":\"prod\""));
    EXPECT_THAT(newest, HasSubstr("\"version\":1,"));
  }
}

TEST_F(DatabaseAwayTest, WithoutItAndWithoutACacheAServerWaits) {
  postgres_.Stop();
  const auto server = fleet_.Start("one");
  const auto client = server->Connect({.max_attempts = 1});
  EXPECT_THAT(HttpGet(server->http_address(), "/readyz"), HasSubstr("waiting for the database"));
  EXPECT_EQ(HttpGet(server->http_address(), "/livez").substr(0, 2), "ok");
  EXPECT_TRUE(absl::IsUnavailable(client->Transform("letters", FleetRow()).status()));
  postgres_.Start();
  const Clock::time_point back = Clock::now();
  while (HttpGet(server->http_address(), "/readyz") != "ok\n" && SecondsSince(back) < 20) {
  }
  EXPECT_EQ(HttpGet(server->http_address(), "/readyz"), "ok\n");
  BuildVersions(*server->Connect(), "letters", 1);
  EXPECT_EQ(Answering(*client, "letters"), 1);
}

// Every process of the database stops without closing a connection, as a machine does that loses
// its power or its network.
TEST_F(DatabaseAwayTest, WhileItHangsNoReadTakesMuchLongerThanASecond) {
  const auto server = fleet_.Start("one");
  const auto patient = server->Connect();
  BuildVersions(*patient, "letters", 2);
  ASSERT_TRUE(patient->SetAlias("letters@1", "prod", "none").ok());
  Answering(*patient, "letters@prod");
  const auto client = server->Connect({.max_attempts = 1});
  {
    const PostgresServer::Paused paused(postgres_);
    const Clock::time_point asked = Clock::now();
    EXPECT_TRUE(absl::IsUnavailable(client->SetAlias("letters@2", "prod", "*").status()));
    EXPECT_LT(SecondsSince(asked), 11);
    for (int round = 0; round < 3; ++round) {
      Clock::time_point start = Clock::now();
      EXPECT_EQ(Answering(*client, "letters@prod"), 1);
      EXPECT_LT(SecondsSince(start), 0.5);
      start = Clock::now();
      EXPECT_TRUE(absl::IsUnavailable(client->ListMappings().status()));
      EXPECT_LT(SecondsSince(start), 1.5);
      start = Clock::now();
      EXPECT_TRUE(absl::IsUnavailable(client->Transform("unknown", FleetRow()).status()));
      EXPECT_LT(SecondsSince(start), 1.5);
      start = Clock::now();
      EXPECT_TRUE(absl::IsUnavailable(client->GetVersion("letters@2").status()));
      EXPECT_LT(SecondsSince(start), 1.5);
    }
    // The command line asks once which columns the version has, and goes on without an answer.
    const Clock::time_point start = Clock::now();
    const ProcessResult mapped =
        RunProcess({PHIMAP_BINARY, absl::StrCat("--server=", server->address()), "transform",
                    "letters@prod", "--input=-", "--output=-", "--format=csv"},
                   "a,b,c,d\n0.1,-0.2,0.3,0.05\n");
    EXPECT_EQ(mapped.exit_code, 0) << mapped.err;
    EXPECT_LT(SecondsSince(start), 2.5);
  }
  const Clock::time_point back = Clock::now();
  while (!client->ListMappings().ok() && SecondsSince(back) < 20) {
  }
  EXPECT_TRUE(client->ListMappings().ok());
}

}  // namespace
}  // namespace phimap::e2e
