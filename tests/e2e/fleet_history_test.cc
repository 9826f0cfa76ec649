// Many clients read and move many aliases of several mappings, on three servers of one database,
// while everything goes wrong that may: servers are killed and paused, one has its clock a day
// ahead and loses connections in the middle of a commit, the database is paused, its standby takes
// over, and an old dump is restored. What the clients saw must be possible.
#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "tests/e2e/failing_calls.h"
#include "tests/e2e/fleet.h"
#include "tests/e2e/fleet_clients.h"
#include "tests/e2e/history.h"
#include "tests/server/support/cutting_proxy.h"

namespace phimap::e2e {
namespace {

using ::phimap::testing::CuttingProxy;
using ::phimap::testing::PausedProcess;
using ::phimap::testing::PostgresServer;
using Clock = std::chrono::steady_clock;

constexpr int kServers = 3;
constexpr int kClients = 6;
constexpr int kMappingCount = 4;
constexpr int kVersionsOfMapping = 25;
// Mappings that nobody reads. They change while servers sleep, so that these have much to catch up
// on.
constexpr int kCrowd = 60;
constexpr int kDay = 86'400;
// Expired versions are deleted every minute, so the test lasts longer than that.
constexpr double kSeconds = 70;
// A server that sleeps, or is cut off from the database, answers reads without a revision as it did
// before, for as long as it lasts here.
constexpr double kStaleLimit = 10;

class FleetHistoryTest : public ::testing::Test {
 protected:
  FleetHistoryTest() {
    fleet_.AddStandby(standby_);
    for (int i = 0; i < kServers; ++i) Restart(i);
    // Nobody calls or kills this server, so that it lives until it deletes what has expired.
    ahead_ = fleet_.StartAt(fleet_.uri(), "ahead", {"--log_level=error"}, ClockAhead());
    const auto client = servers_[0]->Connect();
    for (int i = 0; i < kMappingCount; ++i) {
      BuildVersions(*client, absl::StrCat("m", i), kVersionsOfMapping);
    }
    // Versions that the server whose clock is ahead would delete if it went by its clock.
    for (const char* name : {"canary", "kept"}) {
      GeneratedRows rows(200, kFleetColumns, 1);
      EXPECT_TRUE(client
                      ->Build({.name = name,
                               .spec = "f1(landmarks=20)",
                               .kernel = "rbf(gamma=scale)",
                               .ttl = absl::Minutes(10)},
                              rows)
                      .ok());
    }
    for (int i = 0; i < kCrowd; ++i) BuildVersions(*client, absl::StrCat("z", i), 1);
    for (int i = 0; i < kMappingCount; ++i) Open(i);
  }

  Instant Now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // Kills server `i` if it runs, and starts it at its address. The last one has its clock a day
  // ahead, and its way to the database leads over proxies.
  void Restart(int i) {
    std::vector<std::string> flags = {"--log_level=error"};
    if (servers_[i] != nullptr) {
      flags.push_back("--listen=" + servers_[i]->address());
      servers_[i]->process().Signal(SIGKILL);
      servers_[i]->process().Wait();
    }
    if (i < kServers - 1) {
      servers_[i] = fleet_.Start(absl::StrCat(i), flags);
    } else {
      const std::string over_proxies =
          absl::StrCat("postgresql://postgres@127.0.0.1:", to_primary_.port(),
                       ",127.0.0.1:", to_standby_.port(), "/", fleet_.database());
      servers_[i] = fleet_.StartAt(over_proxies, absl::StrCat(i), flags, ClockAhead());
    }
    if (channels_[i] == nullptr) channels_[i] = ChannelTo(servers_[i]->address());
  }

  // The beginning of the command line of a server whose clock is a day ahead.
  static std::vector<std::string> ClockAhead() {
    return {"/usr/bin/env",
            absl::StrCat(kClockAheadVariable, "=", kDay),
            "/bin/sh",
            "-c",
            "shift; exec \"$0\" \"$@\"",
            PHIMAPD_FAILING_BINARY};
  }

  // Makes a new alias that clients move and read.
  void Open(int mapping) {
    const auto opened =
        std::make_shared<Register>(mapping, absl::StrCat("a", aliases_++), 1, -kNever);
    const auto client = servers_[0]->Connect();
    absl::Status moved;
    do {  // until it is certain
      moved = client->SetAlias(absl::StrCat(opened->name(), "@1"), opened->alias).status();
    } while (absl::IsUnavailable(moved));
    ASSERT_TRUE(moved.ok()) << moved;
    Use(opened);
  }
  void Use(std::shared_ptr<Register> opened) {
    const std::lock_guard<std::mutex> lock(registers_mutex_);
    current_[opened->mapping] = opened;
    all_.push_back(std::move(opened));
  }
  std::shared_ptr<Register> Current(int mapping) {
    const std::lock_guard<std::mutex> lock(registers_mutex_);
    return current_[mapping];
  }

  grpc::Status Move(int server, const std::string& mapping, const std::string& alias, int64_t value,
                    grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(12));
    v1::SetAliasRequest request;
    request.set_reference(absl::StrCat(mapping, "@", value));
    request.set_alias(alias);
    v1::Alias moved;
    return v1::MappingService::NewStub(channels_[server])->SetAlias(&context, request, &moved);
  }

  void WriteOnce(int server, Register& alias) {
    // Not the initial value, and each of the others once.
    int64_t value = alias.next++;
    if (value >= alias.initial) ++value;
    if (value > kVersionsOfMapping) return;
    grpc::ClientContext context;
    Write write{.value = value, .begin = Now()};
    const grpc::Status status = Move(server, alias.name(), alias.alias, value, context);
    if (status.ok()) {
      // Whoever begins later requires the revision. A server that could not read the names again
      // after a change tells none; others may then not see the change yet.
      if (newest_.Note(context)) write.end = Now();
      ++moved_;
    } else {
      const std::optional<ErrorDetail> detail = DetailOf(client::FromGrpc(status));
      write.refused = detail.has_value() && detail->reason == "DATABASE_UNAVAILABLE";
      ++(write.refused ? refused_ : unknown_);
      Tolerate(status);
    }
    {
      const std::lock_guard<std::mutex> lock(alias.mutex);
      alias.writes.push_back(write);
    }
    // If the change was made after all, another server shows it before the next change.
    for (int i = 1; write.refused && i < kServers; ++i) {
      ReadLinearizably((server + i) % kServers, alias);
    }
  }

  // Reads on two servers, one after the other, with a revision that only this client knows.
  void ReadInSession(int session, std::mt19937& random, Register& alias) {
    sessions_[session].BeginWith(newest_);
    for (int i = 0; i < 2; ++i) {
      const int server = static_cast<int>(random() % kServers);
      ReadOnce(server, alias, &sessions_[session], session, &Register::session_reads);
    }
  }

  // Transforms the row by `mapping`@`alias` on a server, and requires `revision` if it is not
  // empty.
  grpc::Status TransformBy(int server, const std::string& mapping, const std::string& alias,
                           const std::string& revision, grpc::ClientContext& context,
                           v1::TransformResponse& response) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    if (!revision.empty()) context.AddMetadata("phimap-min-revision", revision);
    v1::TransformRequest request;
    request.set_reference(absl::StrCat(mapping, "@", alias));
    auto* const dense = request.mutable_examples()->mutable_dense();
    dense->set_rows(1);
    dense->set_columns(kFleetColumns);
    dense->set_float32_le(FleetRow().values_le);
    return v1::TransformService::NewStub(channels_[server])
        ->Transform(&context, request, &response);
  }

  // `revision`: what to require and to note; null if nothing is required. `reader` and `where` say
  // how to record the read.
  void ReadOnce(int server, Register& alias, NewestRevision* revision, int reader,
                std::vector<Read> Register::*where) {
    grpc::ClientContext context;
    Read read{.begin = Now(), .server = reader};
    v1::TransformResponse response;
    const grpc::Status status =
        TransformBy(server, alias.name(), alias.alias, revision == nullptr ? "" : revision->Get(),
                    context, response);
    // A server that does not know of the alias yet, and need not, has never heard of it.
    if (status.error_code() == grpc::StatusCode::NOT_FOUND && revision != &newest_) return;
    if (!status.ok()) return Tolerate(status);
    read.value = response.version().number();
    if (revision != nullptr) revision->Note(context);
    read.end = Now();
    // Shortly after a restore, a server may still answer as before it.
    if (revision != &newest_ && read.begin < alias.begin + kStaleLimit) return;
    const std::lock_guard<std::mutex> lock(alias.mutex);
    (alias.*where).push_back(read);
  }
  void ReadLinearizably(int server, Register& alias) {
    ReadOnce(server, alias, &newest_, server, &Register::reads);
  }

  // Sets a longer life than any before, and looks whether it lasts.
  void KeepOnce(int server) {
    const int64_t minutes = kept_minutes_++;
    const auto stub = v1::MappingService::NewStub(channels_[server]);
    v1::KeepVersionRequest request;
    request.set_reference("kept@1");
    request.mutable_ttl()->set_seconds(60 * minutes);
    v1::Version version;
    {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(12));
      const grpc::Status status = stub->KeepVersion(&context, request, &version);
      if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) return;  // overtaken
      if (!status.ok()) return Tolerate(status);
      newest_.Note(context);
    }
    ++keeps_;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    context.AddMetadata("phimap-min-revision", newest_.Get());
    v1::GetVersionRequest get;
    get.set_reference("kept@1");
    const grpc::Status status = stub->GetVersion(&context, get, &version);
    if (!status.ok()) return Tolerate(status);
    EXPECT_GE(version.ttl().seconds(), 60 * minutes) << "an acknowledged KeepVersion was lost";
  }

  // Errors that a client may get when servers and the database go away.
  static void Tolerate(const grpc::Status& status) {
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
        << status.error_code() << " " << status.error_message();
  }

  void BeClient(int number) {
    std::mt19937 random(static_cast<uint32_t>(number));
    while (!stop_) {
      const int server = static_cast<int>(random() % kServers);
      // Values are not used up on a server that is away.
      if (!channels_[server]->WaitForConnected(std::chrono::system_clock::now() +
                                               std::chrono::milliseconds(20))) {
        continue;
      }
      gate_.Enter();
      const int mapping = static_cast<int>(random() % kMappingCount);
      const std::shared_ptr<Register> alias = Current(mapping);
      const uint32_t dice = random() % 20;
      if (dice == 0) {
        KeepOnce(server);
      } else if (dice < 5 || (cutting_ && dice < 12)) {
        WriteOnce(cutting_ ? kServers - 1 : server, *alias);
      } else if (dice < 12) {
        ReadLinearizably(server, *alias);
      } else if (dice < 16) {
        ReadInSession(number, random, *alias);
      } else {
        ReadOnce(server, *alias, nullptr, server, &Register::plain_reads);
      }
      gate_.Leave();
      NoteDone();
    }
  }
  void NoteDone() {
    {
      const std::lock_guard<std::mutex> lock(done_mutex_);
      ++done_;
    }
    done_changed_.notify_all();
  }
  // Returns when the clients have made `count` more calls, or some seconds have passed without.
  void AwaitCalls(int64_t count) {
    std::unique_lock<std::mutex> lock(done_mutex_);
    const int64_t wanted = done_ + count;
    done_changed_.wait_for(lock, std::chrono::seconds(3), [&] { return done_ >= wanted; });
  }
  // Replaces aliases that have been moved to every version. REQUIRES: no server sleeps.
  void OpenNew() {
    for (int i = 0; i < kMappingCount; ++i) {
      if (Current(i)->next >= kVersionsOfMapping) Open(i);
    }
  }

  // What may go wrong, in turn.

  void KillServers() {
    for (int i = 0; i < kServers; ++i) {
      Restart(i);
      AwaitCalls(200);
      OpenNew();
    }
  }
  // Two servers that were asleep catch up with many changes at once. Whoever reads an alias that
  // was moved meanwhile is told a revision that has the move.
  void PauseServers() {
    for (int i = 0; i < kServers; ++i) {
      const std::string alias = absl::StrCat("a", crowd_moves_++);
      const std::string known = newest_.Get();
      std::atomic<int64_t> moved_at{0};
      std::vector<std::thread> readers;
      {
        // Between calls, because a server that sleeps in a transaction holds its locks.
        std::optional<Gate::Closed> closed(std::in_place, gate_);
        const PausedProcess one(servers_[i]->process().pid());
        const PausedProcess other(servers_[(i + 1) % kServers]->process().pid());
        for (int m = 0; m < kCrowd; ++m) {
          grpc::ClientContext context;
          const grpc::Status status =
              Move((i + 2) % kServers, absl::StrCat("z", m), alias, 1, context);
          Tolerate(status);
          const std::string told = status.ok() ? RevisionOf(context) : "";
          if (m == 0 && !told.empty()) moved_at = NumberOf(told);
        }
        for (int k = 0; k < 4 && moved_at > 0; ++k) {
          readers.emplace_back([&, server = (i + k % 2) % kServers] {
            const Instant limit = Now() + kStaleLimit;
            while (Now() < limit && !ReadsMove(server, alias, known, moved_at)) continue;
          });
        }
        closed.reset();
        AwaitCalls(50);
      }
      for (std::thread& reader : readers) reader.join();
      AwaitCalls(200);
      OpenNew();
    }
  }
  // Whether a server shows the alias of the first of the crowd, which moved at revision `moved_at`.
  bool ReadsMove(int server, const std::string& alias, const std::string& known, int64_t moved_at) {
    grpc::ClientContext context;
    v1::TransformResponse response;
    if (!TransformBy(server, "z0", alias, known, context, response).ok()) return false;
    const std::string told = RevisionOf(context);
    if (told.empty()) return true;
    EXPECT_GE(NumberOf(told), moved_at) << "a server showed a change before its revision";
    ++shown_;
    return true;
  }
  // Connections of the last server are cut in the middle of whatever they do, such as a commit.
  void CutConnections() {
    cutting_ = true;
    for (int i = 0; i < 150; ++i) {
      (promoted_ ? to_standby_ : to_primary_).CutAt(i % 20, /*for_good=*/false);
      AwaitCalls(8);
      OpenNew();
    }
    cutting_ = false;
    (promoted_ ? to_standby_ : to_primary_).CutAt(-1, false);
  }
  void PauseDatabase() {
    {
      const PostgresServer::Paused asleep(promoted_ ? standby_ : primary_);
      AwaitCalls(100);
    }
    AwaitCalls(100);
    OpenNew();
  }
  void PromoteStandby() {
    primary_.Stop();
    standby_.Promote();
    promoted_ = true;
    AwaitCalls(200);
  }
  void Dump() {
    const Gate::Closed closed(gate_);
    fleet_.Dump(dump_);
    // The number of this change will be that of another change after the restore.
    grpc::ClientContext context;
    if (Move(0, "m0", "other", 1, context).ok()) lost_revision_ = RevisionOf(context);
    dumped_.clear();
    for (int i = 0; i < kMappingCount; ++i) dumped_.push_back(Current(i)->alias);
  }
  // Checks that each server that knows the new history refuses a revision of the old one. No server
  // may answer that it has it.
  void ExpectLost(const std::string& revision) {
    if (revision.empty()) return;
    for (int i = 0; i < kServers; ++i) {
      for (const std::string& known : {newest_.Get(), revision}) {
        grpc::ClientContext context;
        v1::TransformResponse response;
        const grpc::Status status = TransformBy(i, "m0", "other", known, context, response);
        if (!status.ok() && known != revision) break;  // It does not know the new history yet.
        if (known != revision) continue;
        EXPECT_FALSE(status.ok()) << "a server took " << revision << " of a lost history for known";
        ++lost_;
      }
    }
  }

  // Makes the database what it was at the last Dump, while one server sleeps and the others run. A
  // new history begins: the aliases of the dump have the values of the dump again.
  void RestoreDump(int sleeper) {
    const Gate::Closed closed(gate_);
    grpc::Status status;
    {
      const PausedProcess asleep(servers_[sleeper]->process().pid());
      fleet_.Restore(dump_);
      newest_.Forget();
      for (NewestRevision& session : sessions_) session.Forget();
      // Changes of the new history, so that it is not shorter than the old one.
      const Instant limit = Now() + kStaleLimit;
      for (int i = 0; i < 30 || (newest_.Get().empty() && Now() < limit); ++i) {
        const int server = (sleeper + 1) % kServers;
        // A call to a channel without a connection fails at once, and gRPC makes no connection
        // while nobody waits for it.
        channels_[server]->WaitForConnected(std::chrono::system_clock::now() +
                                            std::chrono::seconds(1));
        grpc::ClientContext context;
        status = Move(server, "m0", "other", 1 + i % 2, context);
        if (status.ok()) newest_.Note(context);
      }
    }
    ASSERT_NE(newest_.Get(), "") << "the last move: " << status.error_code() << " "
                                 << status.error_message();
    ExpectLost(lost_revision_);
    for (int i = 0; i < kMappingCount; ++i) {
      const auto rows =
          (promoted_ ? standby_ : primary_)
              .Run(absl::StrCat("SELECT version FROM phimap.aliases WHERE mapping = 'm", i,
                                "' AND alias = '", dumped_[i], "'"),
                   fleet_.database());
      ASSERT_EQ(rows.size(), 1);
      Use(std::make_shared<Register>(i, dumped_[i], rows.Int(0, 0), Now()));
    }
    ++restores_;
  }

  // Checks what the clients saw of each alias.
  void CheckHistories() {
    size_t reads = 0;
    for (const std::shared_ptr<Register>& alias : all_) {
      SCOPED_TRACE(absl::StrCat(alias->name(), "@", alias->alias, " from ", alias->initial));
      reads += alias->reads.size() + alias->plain_reads.size() + alias->session_reads.size();
      const std::string contradiction =
          FindContradiction(alias->initial, alias->writes, alias->reads);
      EXPECT_EQ(contradiction, "");
      EXPECT_EQ(FindStaleRead(alias->initial, alias->writes, alias->plain_reads, kStaleLimit), "");
      EXPECT_EQ(FindStaleRead(alias->initial, alias->writes, alias->session_reads, kStaleLimit),
                "");
    }
    std::cout << all_.size() << " aliases: " << moved_ << " moves, " << refused_ << " refused, "
              << unknown_ << " unknown; " << reads << " reads; " << keeps_ << " keeps; "
              << restores_ << " restores; " << shown_ << " moves shown after sleep, " << lost_
              << " lost revisions asked for\n";
    // The test means nothing unless each kind of outcome was there.
    EXPECT_GT(moved_, 200);
    EXPECT_GT(refused_, 0);
    EXPECT_GT(unknown_, 0);
    EXPECT_GT(keeps_, 20);
    EXPECT_GT(shown_, 0);
    EXPECT_GT(lost_, 0);
  }

  PostgresServer primary_;
  PostgresServer standby_{primary_};
  Fleet fleet_{primary_};
  CuttingProxy to_primary_{primary_.port()};
  CuttingProxy to_standby_{standby_.port()};
  TemporaryFolder folder_;
  const std::string dump_ = folder_.path() + "/dump.sql";
  std::vector<std::string> dumped_;
  bool promoted_ = false;
  std::vector<std::unique_ptr<ServerProcess>> servers_{kServers};
  std::unique_ptr<ServerProcess> ahead_;
  std::string lost_revision_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_{kServers};
  const Clock::time_point start_ = Clock::now();
  std::atomic<bool> stop_{false};
  Gate gate_;
  NewestRevision newest_;
  std::array<NewestRevision, kClients> sessions_;
  std::mutex registers_mutex_;
  std::vector<std::shared_ptr<Register>> current_{kMappingCount};
  std::vector<std::shared_ptr<Register>> all_;
  int aliases_ = 0;
  int crowd_moves_ = 0;
  std::atomic<bool> cutting_{false};
  int restores_ = 0;
  std::atomic<int64_t> kept_minutes_{60};
  std::atomic<int> moved_{0}, refused_{0}, unknown_{0}, keeps_{0}, shown_{0};
  int lost_ = 0;
  std::mutex done_mutex_;
  std::condition_variable done_changed_;
  int64_t done_ = 0;
};

TEST_F(FleetHistoryTest, WhatClientsSeeIsPossibleWhateverGoesWrong) {
  const Instant begin = Now();
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) clients.emplace_back([this, i] { BeClient(i); });
  AwaitCalls(200);
  for (int round = 0; round < 2 || Now() < begin + kSeconds; ++round) {
    KillServers();
    Dump();
    PauseServers();
    CutConnections();
    RestoreDump(round % kServers);
    PauseDatabase();
    if (round == 0) PromoteStandby();
  }
  stop_ = true;
  for (std::thread& client : clients) client.join();
  CheckHistories();
  for (int i = 0; i < kServers; ++i) {
    const absl::StatusOr<v1::Version> canary = servers_[i]->Connect()->GetVersion("canary@1");
    EXPECT_TRUE(canary.ok()) << "a server deleted a version by its own clock: " << canary.status();
  }
}

}  // namespace
}  // namespace phimap::e2e
