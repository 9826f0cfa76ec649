#include "server/store/postgres/postgres_schema.h"

#include <thread>
#include <vector>

#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

class PostgresSchemaTest : public PostgresTest {
 protected:
  // The migrations of this release, and one more that a later release might add.
  std::vector<PostgresMigration> Next(const char* statements, int64_t oldest_reader) {
    const auto known = PostgresMigrations();
    std::vector<PostgresMigration> next(known.begin(), known.end());
    next.push_back({statements, oldest_reader});
    return next;
  }
  const int64_t known_ = static_cast<int64_t>(PostgresMigrations().size());
  // Returns when some session in this database waits for a lock.
  void AwaitLockWait() {
    server_.Await(
        "EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = '" +
        name_ + "')");
  }
  int64_t version() { return Run("SELECT schema_version FROM phimap.store").Int(0, 0); }
};

TEST_F(PostgresSchemaTest, AnEmptyDatabaseGetsTablesAndANameAndTheSecondServerFindsThem) {
  ASSERT_TRUE(PreparePostgresSchema(*Connect()).ok());
  const SqlRows first = Run("SELECT store_id, epoch, revision FROM phimap.store");
  ASSERT_EQ(first.size(), 1);
  EXPECT_THAT(first.Text(0, 0), MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(first.Text(0, 0).size(), 32);
  EXPECT_NE(first.Text(0, 0), first.Text(0, 1));
  EXPECT_EQ(first.Int(0, 2), 0);
  ASSERT_TRUE(PreparePostgresSchema(*Connect()).ok());
  EXPECT_EQ(Run("SELECT store_id FROM phimap.store").Text(0, 0), first.Text(0, 0));
  EXPECT_EQ(version(), known_);
}

TEST_F(PostgresSchemaTest, ServersMayStartAtOnce) {
  RunTogether(4, [&](int) {
    const absl::Status status = PreparePostgresSchema(*Connect());
    EXPECT_TRUE(status.ok()) << status;
  });
  EXPECT_EQ(Run("SELECT * FROM phimap.store").size(), 1);
}

TEST_F(PostgresSchemaTest, AnAdditionIsMadeWhileServersOfTheVersionBeforeWork) {
  const auto before = OpenDatabase();
  const auto next = Next("ALTER TABLE mappings ADD COLUMN note TEXT;", 1);
  ASSERT_TRUE(PreparePostgresSchema(*Connect(), next).ok());
  EXPECT_EQ(version(), known_ + 1);
  const absl::Status written = before->Write(
      [](SqlSession& session) {
        return session
            .Run(
                "INSERT INTO mappings (name, next_version, create_time_us) "
                "VALUES ('letters', 1, 0)")
            .status();
      },
      [](SqlSession&) { return false; }, "");
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_TRUE(Run("SELECT note FROM phimap.mappings").IsNull(0, 0));
  // A server of this release may also still start.
  const absl::Status status = PreparePostgresSchema(*Connect());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(version(), known_ + 1);
}

// A migration that adds a column takes its locks in the same order as every writer: first the row
// in the table `store`, then the other tables. Therefore the two cannot deadlock.
TEST_F(PostgresSchemaTest, AnAdditionWaitsForAWriterInsteadOfEndingIt) {
  ASSERT_TRUE(PreparePostgresSchema(*Connect()).ok());
  const auto writer = Connect();
  ASSERT_TRUE(writer->RunBatch("BEGIN; SELECT epoch FROM phimap.store FOR UPDATE").ok());
  absl::Status added;
  std::thread migration([&] {
    added = PreparePostgresSchema(*Connect(),
                                  Next("ALTER TABLE versions ADD COLUMN note TEXT;", known_));
  });
  AwaitLockWait();
  const auto read = writer->RunBatch("SELECT count(*) FROM phimap.versions").value();
  EXPECT_TRUE(writer->RunBatch("COMMIT").ok());
  migration.join();
  EXPECT_TRUE(added.ok()) << added;
}

// A reader follows no order of locks, so a reader and a migration can deadlock. PostgreSQL then
// ends one of the two. If it ends the migration, the migration is tried again.
TEST_F(PostgresSchemaTest, AnAdditionThatMeetsADeadlockIsMadeAgain) {
  ASSERT_TRUE(PreparePostgresSchema(*Connect()).ok());
  const auto reader = Connect();
  ASSERT_TRUE(reader->RunBatch("BEGIN; SELECT count(*) FROM phimap.mappings").ok());
  absl::Status added;
  std::thread migration([&] {
    added = PreparePostgresSchema(*Connect(), Next("ALTER TABLE versions ADD COLUMN note TEXT;"
                                                   "ALTER TABLE mappings ADD COLUMN note TEXT;",
                                                   known_));
  });
  AwaitLockWait();
  const auto read = reader->RunBatch("SELECT count(*) FROM phimap.versions").value();
  EXPECT_TRUE(reader->RunBatch("COMMIT").ok());
  migration.join();
  EXPECT_TRUE(added.ok()) << added;
}

TEST_F(PostgresSchemaTest, ASchemaThatIsTooNewIsRefusedAndLeftAsItIs) {
  ASSERT_TRUE(
      PreparePostgresSchema(*Connect(), Next("CREATE TABLE more (x BIGINT);", known_ + 1)).ok());
  const absl::Status status = PreparePostgresSchema(*Connect());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(ReasonOf(status), "STORE_TOO_NEW");
  EXPECT_EQ(version(), known_ + 1);
}

TEST_F(PostgresSchemaTest, AMigrationThatFailsChangesNothing) {
  ASSERT_TRUE(PreparePostgresSchema(*Connect()).ok());
  auto connection = Connect();
  const auto broken = Next("CREATE TABLE more (x BIGINT); SELECT nothing;", 1);
  EXPECT_FALSE(PreparePostgresSchema(*connection, broken).ok());
  EXPECT_EQ(version(), known_);
  EXPECT_EQ(Run("SELECT to_regclass('phimap.more') IS NULL").Int(0, 0), 1);
  EXPECT_TRUE(connection->IsAlive());
}

TEST_F(PostgresSchemaTest, WithoutTheRightToCreateTheErrorSaysWhatToGrant) {
  Run("REVOKE CREATE ON DATABASE " + name_ + " FROM PUBLIC");
  const std::string uri =
      "postgresql://locked:" + std::string(phimap::testing::PostgresServer::kLockedPassword) +
      server_.Uri(name_).substr(server_.Uri(name_).find('@'));
  auto connection = PostgresConnection::Open(uri, {}).value();
  const absl::Status status = PreparePostgresSchema(*connection);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("grant"));
  // If the user owns the schema, it needs no rights on the database itself.
  Run("CREATE SCHEMA phimap AUTHORIZATION locked");
  EXPECT_TRUE(PreparePostgresSchema(*connection).ok());
}

TEST_F(PostgresSchemaTest, TextComparesByteByByte) {
  ASSERT_TRUE(PreparePostgresSchema(*Connect()).ok());
  Run("INSERT INTO phimap.mappings (name, next_version, create_time_us) "
      "VALUES ('b', 1, 0), ('B', 1, 0), ('a_', 1, 0), ('a1', 1, 0), ('ä', 1, 0)");
  const SqlRows rows = Run("SELECT name FROM phimap.mappings ORDER BY name");
  std::string order;
  for (size_t row = 0; row < rows.size(); ++row) order += rows.Text(row, 0) + " ";
  EXPECT_EQ(order, "B a1 a_ b ä ");
}

}  // namespace
}  // namespace phimap::testing
