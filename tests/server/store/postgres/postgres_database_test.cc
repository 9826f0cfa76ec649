#include "server/store/postgres/postgres_database.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

absl::StatusOr<bool> NeverAsked(SqlSession&) {
  ADD_FAILURE() << "the commit was not in doubt";
  return false;
}

// Takes the next revision, as every change of the store does, and records it in the table
// `changes`.
absl::Status AddChange(SqlSession& session, int64_t who) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows row,
      session.Run("UPDATE store SET revision = revision + 1 RETURNING revision"));
  return session.Run("INSERT INTO written VALUES ($1, $2)", {row.Int(0, 0), who}).status();
}

class PostgresDatabaseTest : public PostgresTest {
 protected:
  void SetUp() override {
    database_ = OpenDatabase();
    Run("CREATE TABLE phimap.written (revision BIGINT PRIMARY KEY, who BIGINT NOT NULL)");
  }
  int64_t CountChanges() { return Run("SELECT count(*) FROM phimap.written").Int(0, 0); }
  absl::Status Change(PostgresDatabase& database, int64_t who) {
    return database.Write([&](SqlSession& session) { return AddChange(session, who); }, NeverAsked,
                          "a change was made");
  }

  std::unique_ptr<PostgresDatabase> database_;
};

absl::Status SelectOne(SqlSession& session) { return session.Run("SELECT 1").status(); }

TEST_F(PostgresDatabaseTest, WhatIsWrittenIsReadAndABodysErrorStoresNothing) {
  ASSERT_TRUE(Change(*database_, 7).ok());
  int64_t who = 0;
  ASSERT_TRUE(database_
                  ->Read([&](SqlSession& session) -> absl::Status {
                    PHIMAP_ASSIGN_OR_RETURN(
                        const SqlRows rows,
                        session.Run("SELECT who FROM written WHERE revision = $1", {int64_t{1}}));
                    who = rows.Int(0, 0);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(who, 7);
  const absl::Status status = database_->Write(
      [](SqlSession& session) -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(AddChange(session, 8));
        return absl::NotFoundError("the body's");
      },
      NeverAsked, "a change was made");
  EXPECT_EQ(status, absl::NotFoundError("the body's"));
  EXPECT_EQ(CountChanges(), 1);
  EXPECT_TRUE(Change(*database_, 9).ok());
}

TEST_F(PostgresDatabaseTest, AnErrorThatTheBodyPassesOverStillStoresNothing) {
  const absl::Status status = database_->Write(
      [](SqlSession& session) -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(AddChange(session, 8));
        session.Run("SELECT nothing").status().IgnoreError();
        return absl::OkStatus();
      },
      NeverAsked, "a change was made");
  EXPECT_EQ(ReasonOf(status), "DATABASE_FAILED") << status;
  EXPECT_EQ(CountChanges(), 0);
}

TEST_F(PostgresDatabaseTest, ReadsSeeOneSnapshotAndCannotWrite) {
  ASSERT_TRUE(database_
                  ->Read([&](SqlSession& session) -> absl::Status {
                    PHIMAP_ASSIGN_OR_RETURN(const SqlRows before,
                                            session.Run("SELECT count(*) FROM written"));
                    PHIMAP_RETURN_IF_ERROR(Change(*database_, 1));
                    PHIMAP_ASSIGN_OR_RETURN(const SqlRows after,
                                            session.Run("SELECT count(*) FROM written"));
                    EXPECT_EQ(before.Int(0, 0), after.Int(0, 0));
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_FALSE(database_->Read([](SqlSession& session) { return AddChange(session, 1); }).ok());
  EXPECT_EQ(CountChanges(), 1);
}

TEST_F(PostgresDatabaseTest, ConnectionsThatWereCutWhileIdleAreNoError) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(Change(*database_, round).ok());
    EXPECT_GE(server_.CutConnections(name_), 1);
    EXPECT_TRUE(database_->Read(SelectOne).ok());
    EXPECT_GE(server_.CutConnections(name_), 1);
  }
  EXPECT_EQ(CountChanges(), 3);
}

TEST_F(PostgresDatabaseTest, AReadThatIsCutInItsMiddleBeginsAgainOnce) {
  for (const int cuts : {1, 2}) {
    int runs = 0;
    const absl::Status status = database_->Read([&](SqlSession& session) -> absl::Status {
      PHIMAP_RETURN_IF_ERROR(session.Run("SELECT 1").status());
      if (++runs <= cuts) server_.CutConnections(name_);
      return session.Run("SELECT 2").status();
    });
    EXPECT_EQ(status.ok(), cuts == 1) << status;
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(ReasonOf(status), cuts == 1 ? "" : "DATABASE_UNAVAILABLE");
  }
}

TEST_F(PostgresDatabaseTest, AWriteThatIsCutBeforeItsCommitHappensOnce) {
  int runs = 0;
  const absl::Status status = database_->Write(
      [&](SqlSession& session) -> absl::Status {
        if (++runs == 1) server_.CutConnections(name_);
        return AddChange(session, runs);
      },
      NeverAsked, "a change was made");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(CountChanges(), 1);
}

TEST_F(PostgresDatabaseTest, ABackendThatStallsIsLeftForAnotherOne) {
  const auto database =
      OpenDatabase({.pool = {.timeouts = {.statement = absl::Milliseconds(100)}}});
  int64_t pid = 0;
  ASSERT_TRUE(database
                  ->Read([&](SqlSession& session) -> absl::Status {
                    PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                                            session.Run("SELECT pg_backend_pid()"));
                    pid = rows.Int(0, 0);
                    return absl::OkStatus();
                  })
                  .ok());
  const PausedProcess paused(static_cast<pid_t>(pid));
  EXPECT_TRUE(database->Read(SelectOne).ok());
}

TEST_F(PostgresDatabaseTest, AWriterThatWaitsTooLongForAnotherIsBusyAndStoresNothing) {
  const auto database = OpenDatabase({.pool = {.timeouts = {.lock = absl::Milliseconds(50)}}});
  auto other = Connect();
  ASSERT_TRUE(other->RunBatch("BEGIN; SELECT * FROM phimap.store FOR UPDATE").ok());
  const absl::Status status = Change(*database, 1);
  EXPECT_EQ(ReasonOf(status), "DATABASE_BUSY") << status;
  EXPECT_TRUE(database->Read(SelectOne).ok()) << "readers do not wait for writers";
  ASSERT_TRUE(other->RunBatch("ROLLBACK").ok());
  EXPECT_TRUE(Change(*database, 2).ok());
  EXPECT_EQ(CountChanges(), 1);
}

TEST_F(PostgresDatabaseTest, CallersWaitForAFreeConnectionUntilTheirDeadline) {
  const auto database = OpenDatabase({.pool = {.connections = 1, .wait = absl::Milliseconds(50)}});
  ASSERT_TRUE(database
                  ->Read([&](SqlSession& session) -> absl::Status {
                    PHIMAP_RETURN_IF_ERROR(SelectOne(session));
                    EXPECT_EQ(ReasonOf(database->Read(SelectOne)), "DATABASE_BUSY");
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_TRUE(database->Read(SelectOne).ok());
}

TEST_F(PostgresDatabaseTest, EachWriteNotifiesListeners) {
  auto listener = Connect();
  ASSERT_TRUE(listener->Listen("phimap").ok());
  ASSERT_TRUE(Change(*database_, 1).ok());
  const auto notified =
      listener->WaitForNotification(std::chrono::steady_clock::now() + std::chrono::seconds(30))
          .value();
  EXPECT_TRUE(notified);
}

// Revisions must become visible in order. If they came from a PostgreSQL sequence, revision 4 could
// be committed after revision 5, and a reader that had seen 5 would miss 4. A trigger that runs at
// COMMIT makes half of the commits slow.
TEST_F(PostgresDatabaseTest, RevisionsAreInTheOrderOfCommitsAlsoWhenSomeAreSlow) {
  Run("CREATE FUNCTION phimap.dawdle() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM pg_sleep(0.005); RETURN NULL; END $$; "
      "CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON phimap.written DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW WHEN (new.who % 2 = 0) EXECUTE FUNCTION phimap.dawdle()");
  constexpr int kChanges = 30;
  constexpr int kWriters = 4;
  const auto second = OpenDatabase();
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> writers;
  for (int who = 0; who < kWriters; ++who) {
    writers.emplace_back([&, who] {
      for (int i = 0; i < kChanges; ++i) {
        const absl::Status status = Change(who < 2 ? *database_ : *second, who);
        EXPECT_TRUE(status.ok()) << status;
      }
      --writing;
    });
  }
  int64_t seen = 0;
  while (writing > 0) {
    const SqlRows rows = Run("SELECT count(*), coalesce(max(revision), 0) FROM phimap.written");
    EXPECT_EQ(rows.Int(0, 0), rows.Int(0, 1)) << "a revision was seen before one below it";
    EXPECT_GE(rows.Int(0, 0), seen);
    seen = rows.Int(0, 0);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(CountChanges(), kWriters * kChanges);
  EXPECT_EQ(Run("SELECT revision FROM phimap.store").Int(0, 0), kWriters * kChanges);
}

TEST_F(PostgresDatabaseTest, AServerWithoutAStandbySaysSo) {
  EXPECT_FALSE(database_->has_synchronous_standby());
}

TEST_F(PostgresDatabaseTest, NeitherAWrongDatabaseNorAWrongAddressIsOpened) {
  const absl::Status nowhere = PostgresDatabase::Open(server_.Uri("nowhere")).status();
  EXPECT_EQ(ReasonOf(nowhere), "DATABASE_REFUSED") << nowhere;
  const absl::Status bad = PostgresDatabase::Open("postgresql://u:p@w@h/x").status();
  EXPECT_EQ(ReasonOf(bad), "DATABASE_ADDRESS_INVALID") << bad;
}

// Each test of this fixture has its own PostgreSQL server, which it stops and starts.
class PostgresAwayTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<PostgresDatabase>> Open(absl::Duration first_backoff) {
    return PostgresDatabase::Open(
        server_.Uri("postgres"),
        {.pool = {.first_backoff = first_backoff, .longest_backoff = first_backoff}});
  }
  PostgresServer server_;
};

TEST_F(PostgresAwayTest, CallsFailAtOnceWithTheTimeUntilTheNextAttempt) {
  auto database = Open(absl::Hours(1)).value();
  server_.Stop();
  absl::Status status = database->Read(SelectOne);
  EXPECT_EQ(ReasonOf(status), "DATABASE_UNAVAILABLE") << status;
  server_.Start();
  // The database is back, but no call tries to connect before the backoff is over. The backoff is
  // an hour, of which random jitter may take off up to half.
  for (int call = 0; call < 2; ++call) {
    status = database->Read(SelectOne);
    EXPECT_EQ(ReasonOf(status), "DATABASE_UNAVAILABLE") << status;
    EXPECT_GT(DetailOf(status)->retry_delay_ms, 29 * 60 * 1000);
    EXPECT_LE(DetailOf(status)->retry_delay_ms, 60 * 60 * 1000);
    status = database->Write(SelectOne, NeverAsked, "nothing was written");
    EXPECT_EQ(ReasonOf(status), "DATABASE_UNAVAILABLE") << status;
  }
}

TEST_F(PostgresAwayTest, ADatabaseThatComesBackIsUsedAgain) {
  auto database = Open(absl::Milliseconds(10)).value();
  for (int round = 0; round < 2; ++round) {
    server_.Stop();
    EXPECT_TRUE(absl::IsUnavailable(database->Read(SelectOne)));
    EXPECT_TRUE(absl::IsUnavailable(database->Write(SelectOne, NeverAsked, "nothing was written")));
    server_.Start();
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    absl::Status status;
    do {
      status = database->Read(SelectOne);
    } while (!status.ok() && absl::Now() < deadline);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(database->Write(SelectOne, NeverAsked, "nothing was written").ok());
  }
}

}  // namespace
}  // namespace phimap::testing
