// Tests commits whose answer is lost, or whose answer does not say whether the change was made.
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// True while a backend waits in COMMIT for a standby that does not exist.
constexpr char kCommits[] =
    "EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%COMMIT')";
constexpr char kCommittingBackend[] = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

class PostgresCommitTest : public ::testing::Test {
 protected:
  PostgresCommitTest() {
    auto database =
        PostgresDatabase::Open(server_.Uri("postgres"), {.settle = absl::Seconds(20)}).value();
    database_ = std::move(database);
    server_.Run("CREATE TABLE phimap.written (who BIGINT)");
  }
  ~PostgresCommitTest() override {
    if (writer_.joinable()) writer_.join();
  }

  // Begins a write on a separate thread.
  void BeginWrite(PostgresDatabase& database) {
    writer_ = std::thread([this, &database] {
      status_ = database.Write(
          [](SqlSession& session) {
            return session.Run("INSERT INTO written VALUES (1)").status();
          },
          [this](SqlSession& session) -> absl::StatusOr<bool> {
            ++questions_;
            PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows, session.Run("SELECT who FROM written"));
            return !rows.empty();
          },
          "the change was made");
      done_ = true;
    });
  }
  absl::Status EndWrite() {
    writer_.join();
    return status_;
  }
  int64_t CountChanges() { return server_.Run("SELECT count(*) FROM phimap.written").Int(0, 0); }

  PostgresServer server_;
  std::unique_ptr<PostgresDatabase> database_;
  std::thread writer_;
  absl::Status status_;
  std::atomic<int> questions_{0};
  std::atomic<bool> done_{false};
};

TEST_F(PostgresCommitTest, ACommitThatIsCutBeforeItHappenedIsAnErrorThatIsNotInDoubt) {
  server_.Run(
      "CREATE FUNCTION phimap.dawdle() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$; "
      "CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON phimap.written DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION phimap.dawdle()");
  BeginWrite(*database_);
  constexpr char kSleeps[] = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
  server_.Await(absl::StrCat("EXISTS (SELECT 1 ", kSleeps, ")"));
  server_.Run(absl::StrCat("SELECT pg_terminate_backend(pid) ", kSleeps));
  const absl::Status status = EndWrite();
  EXPECT_EQ(ReasonOf(status), "DATABASE_UNAVAILABLE") << status;
  EXPECT_EQ(questions_, 1);
  EXPECT_EQ(CountChanges(), 0);
}

TEST_F(PostgresCommitTest, ACommitThatTheServerRefusesIsNotInDoubt) {
  server_.Run(
      "CREATE FUNCTION phimap.refuse() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$; "
      "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON phimap.written DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION phimap.refuse()");
  BeginWrite(*database_);
  EXPECT_EQ(ReasonOf(EndWrite()), "DISK_FULL");
  EXPECT_EQ(questions_, 0);
  EXPECT_EQ(CountChanges(), 0);
}

// The primary has the commit, but its answer did not arrive, and the standby does not have the
// commit. The change can already be read, but the write may report success only once the standby
// has the commit.
TEST_F(PostgresCommitTest, ACommitWhoseAnswerIsLostIsOkOnceTheStandbyHasIt) {
  server_.Set("synchronous_standby_names", "nobody");
  BeginWrite(*database_);
  server_.Await(kCommits);
  server_.Run(absl::StrCat("SELECT pg_terminate_backend(pid) ", kCommittingBackend));
  // Waits for the second commit, with which the client finds out whether the first commit was made.
  server_.Await(
      "EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT')");
  EXPECT_EQ(CountChanges(), 1);
  EXPECT_EQ(questions_, 1);
  EXPECT_FALSE(done_);
  server_.Set("synchronous_standby_names", "");
  const absl::Status status = EndWrite();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(PostgresCommitTest, ACommitWhoseWaitForTheStandbyWasCancelledStaysInDoubt) {
  server_.Set("synchronous_standby_names", "nobody");
  BeginWrite(*database_);
  server_.Await(kCommits);
  server_.Run(absl::StrCat("SELECT pg_cancel_backend(pid) ", kCommittingBackend));
  const absl::Status status = EndWrite();
  EXPECT_EQ(ReasonOf(status), "COMMIT_IN_DOUBT") << status;
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_GT(DetailOf(status)->retry_delay_ms, 0);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("it is not known whether the change was made"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("synchronous replication"));
  EXPECT_EQ(CountChanges(), 1);
}

TEST_F(PostgresCommitTest, ACommitThatCannotBeSettledInTimeStaysInDoubtAndTheNextWriteWorks) {
  auto database = PostgresDatabase::Open(
      server_.Uri("postgres"), {.pool = {.timeouts = {.statement = absl::Milliseconds(200),
                                                      .lock = absl::Milliseconds(100)}},
                                .settle = absl::Milliseconds(500)});
  ASSERT_TRUE(database.ok()) << database.status();
  server_.Set("synchronous_standby_names", "nobody");
  BeginWrite(**database);
  const absl::Status status = EndWrite();
  EXPECT_EQ(ReasonOf(status), "COMMIT_IN_DOUBT") << status;
  EXPECT_EQ(questions_, 0) << "the row is locked as long as the commit is under way";
  EXPECT_EQ(CountChanges(), 0);
  server_.Set("synchronous_standby_names", "");
  server_.Await("(SELECT count(*) FROM phimap.written) = 1");
  BeginWrite(**database);
  EXPECT_TRUE(EndWrite().ok());
}

TEST_F(PostgresCommitTest, ACommitWhoseServerDiedIsSettledWhenItIsBack) {
  server_.Set("synchronous_standby_names", "nobody");
  BeginWrite(*database_);
  server_.Await(kCommits);
  server_.Stop();
  server_.Start();
  server_.Set("synchronous_standby_names", "");
  const absl::Status status = EndWrite();
  // The commit's record may or may not have reached the disk. The answer must tell which of the two
  // happened.
  EXPECT_EQ(status.ok(), CountChanges() == 1) << status;
  EXPECT_GE(questions_, 1);
  EXPECT_EQ(ReasonOf(status), status.ok() ? "" : "DATABASE_UNAVAILABLE");
}

TEST_F(PostgresCommitTest, AStandbyThatIsNamedIsFound) {
  server_.Set("synchronous_standby_names", "nobody");
  server_.CutConnections("postgres");
  EXPECT_FALSE(database_->has_synchronous_standby());
  EXPECT_TRUE(database_->Read([](SqlSession&) { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(database_->has_synchronous_standby());
}

TEST_F(PostgresCommitTest, AStandbyThatIsNamedAndNotConnectedIsMissing) {
  EXPECT_EQ(database_->facts().store_id, "");  // nobody has looked yet
  database_->LookAtFacts();
  const std::string store_id = database_->facts().store_id;
  EXPECT_EQ(store_id, server_.Run("SELECT store_id FROM phimap.store").Text(0, 0));
  EXPECT_FALSE(database_->facts().synchronous_standby_missing);  // none is named
  server_.Set("synchronous_standby_names", "nobody");
  database_->LookAtFacts();
  EXPECT_TRUE(database_->facts().synchronous_standby_missing);
  EXPECT_EQ(database_->facts().standbys, 0);
  server_.Set("synchronous_standby_names", "*");
  PostgresServer standby(server_);
  server_.Await("EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')");
  database_->LookAtFacts();
  EXPECT_FALSE(database_->facts().synchronous_standby_missing);
  EXPECT_EQ(database_->facts().standbys, 1);
  standby.Stop();
  server_.Await("NOT EXISTS (SELECT 1 FROM pg_stat_replication)");
  database_->LookAtFacts();
  EXPECT_EQ(database_->facts().standbys, 0);
  EXPECT_EQ(database_->facts().store_id, store_id);
}

}  // namespace
}  // namespace phimap::testing
