// Tests how soon a server learns about another server's changes, even if its connection to the
// database breaks or hangs.
#include "server/store/postgres/postgres_feed.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "server/store/postgres/postgres_schema.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Clock = std::chrono::steady_clock;

class PostgresFeedTest : public PostgresTest {
 protected:
  PostgresFeedTest() { EXPECT_TRUE(PreparePostgresSchema(*Connect()).ok()); }

  // Makes a change as another server would.
  void Change() {
    Run("UPDATE phimap.store SET revision = revision + 1");
    Run("INSERT INTO phimap.mappings (name, next_version, create_time_us, revision) SELECT "
        "'m' || revision, 1, 0, revision FROM phimap.store");
  }
  void Notify() { Run("SELECT pg_notify('phimap', '')"); }
  // The process id of the PostgreSQL backend that serves the feed's connection.
  pid_t Backend() {
    const SqlRows rows =
        Run(absl::StrCat("SELECT pid FROM pg_stat_activity WHERE datname = '", name_,
                         "' AND application_name = 'phimapd' AND pid <> pg_backend_pid()"));
    EXPECT_EQ(rows.size(), 1);
    return static_cast<pid_t>(rows.Int(0, 0));
  }
  static double Seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  PostgresFeed feed_{uri_};
};

TEST_F(PostgresFeedTest, TellsWhatChangedSinceARevision) {
  const auto all = feed_.ChangesSince(Revision()).value();
  EXPECT_TRUE(all.whole);
  EXPECT_EQ(all.revision.number, 0);
  Change();
  const auto changes = feed_.ChangesSince(all.revision).value();
  EXPECT_FALSE(changes.whole);
  EXPECT_EQ(changes.revision.number, 1);
  ASSERT_EQ(changes.mappings.size(), 1);
  EXPECT_EQ(changes.mappings[0].mapping, "m1");
}

// While a dump is loaded, the tables are there before their rows.
TEST_F(PostgresFeedTest, AStoreWithoutItsRowIsAnErrorUntilTheRowIsThere) {
  Change();
  Run("CREATE TABLE phimap.kept AS TABLE phimap.store");
  Run("DELETE FROM phimap.store");
  const absl::Status lacking = feed_.ChangesSince(Revision()).status();
  EXPECT_EQ(ReasonOf(lacking), "STORE_INVALID") << lacking;
  Run("INSERT INTO phimap.store SELECT * FROM phimap.kept");
  EXPECT_EQ(feed_.ChangesSince(Revision()).value().revision.number, 1);
}

TEST_F(PostgresFeedTest, ANoticeEndsTheWait) {
  ASSERT_TRUE(feed_.ChangesSince(Revision()).ok());
  Notify();
  const Clock::time_point start = Clock::now();
  feed_.Await(absl::Seconds(60));
  EXPECT_LT(Seconds(Clock::now() - start), 30);
}

TEST_F(PostgresFeedTest, WithoutANoticeTheWaitEndsAllTheSame) {
  ASSERT_TRUE(feed_.ChangesSince(Revision()).ok());
  const Clock::time_point start = Clock::now();
  feed_.Await(absl::Milliseconds(50));
  EXPECT_GE(Seconds(Clock::now() - start), 0.05);
}

TEST_F(PostgresFeedTest, WhenTheConnectionIsCutItMakesAnother) {
  ASSERT_TRUE(feed_.ChangesSince(Revision()).ok());
  server_.CutConnections(name_);
  feed_.Await(absl::Seconds(60));  // returns early because the connection is closed
  Change();
  const auto changes = feed_.ChangesSince(Revision()).value();
  EXPECT_EQ(changes.revision.number, 1);
}

// A backend that hangs looks like a database that has vanished. The feed stops waiting within half
// a second, and makes its next attempt over another connection.
TEST_F(PostgresFeedTest, AConnectionThatHangsIsGivenUpSoon) {
  ASSERT_TRUE(feed_.ChangesSince(Revision()).ok());
  const PausedProcess paused(Backend());
  Change();
  const Clock::time_point start = Clock::now();
  const auto hanging = feed_.ChangesSince(Revision());
  EXPECT_TRUE(absl::IsUnavailable(hanging.status())) << hanging.status();
  EXPECT_LT(Seconds(Clock::now() - start), 1);
  const auto changes = feed_.ChangesSince(Revision()).value();
  EXPECT_EQ(changes.revision.number, 1);
}

// The database is slow but reachable. Each attempt waits twice as long as the previous one, so one
// of them finally gets the answer.
TEST_F(PostgresFeedTest, AnAnswerThatTakesLongIsWaitedForInTheEnd) {
  PostgresFeed impatient(uri_, {.patience = absl::Milliseconds(20)});
  // Makes every read of the revision take 0.3 s.
  Run("CREATE OR REPLACE VIEW phimap.head AS SELECT c.id, c.revision FROM phimap.changes c, "
      "pg_sleep(0.3) ORDER BY c.revision DESC LIMIT 1");
  int attempts = 1;
  while (!impatient.ChangesSince(Revision()).ok() && attempts < 20) ++attempts;
  EXPECT_GE(attempts, 3);
  EXPECT_LT(attempts, 10);
}

TEST_F(PostgresFeedTest, ThroughAPoolerItAsks) {
  const PgBouncer pooler(server_);
  PostgresFeed feed(pooler.Uri(name_));
  ASSERT_TRUE(feed.ChangesSince(Revision()).ok());
  Change();
  feed.Await(absl::Milliseconds(20));
  const auto changes = feed.ChangesSince(Revision()).value();
  EXPECT_EQ(changes.revision.number, 1);
}

}  // namespace
}  // namespace phimap::testing
