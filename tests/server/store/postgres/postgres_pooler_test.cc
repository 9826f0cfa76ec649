// Tests phimapd with PgBouncer, in transaction mode, in front of PostgreSQL.
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/store/postgres/postgres_blobs.h"
#include "server/store/sha256.h"
#include "tests/server/store/postgres/postgres_fixture.h"

namespace phimap::testing {
namespace {

class PostgresPoolerTest : public PostgresTest {
 protected:
  PgBouncer pooler_{server_};
  const std::string uri_through_ = pooler_.Uri(name_);
};

TEST_F(PostgresPoolerTest, TwoServersWriteAndReadOverOneConnectionOfThePooler) {
  constexpr int kChanges = 20;
  auto first = PostgresDatabase::Open(uri_through_).value();
  auto second = PostgresDatabase::Open(uri_through_).value();
  auto listener = Connect();  // connects directly, not through the pooler
  ASSERT_TRUE(listener->Listen("phimap").ok());
  std::vector<std::thread> writers;
  for (PostgresDatabase* database : {first.get(), second.get()}) {
    writers.emplace_back([database] {
      for (int i = 0; i < kChanges; ++i) {
        const absl::Status status = database->Write(
            [](SqlSession& session) {
              return session.Run("UPDATE store SET revision = revision + $1", {int64_t{1}})
                  .status();
            },
            [](SqlSession&) { return false; }, "");
        EXPECT_TRUE(status.ok()) << status;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  int64_t revision = 0;
  const absl::Status read = first->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows, session.Run("SELECT revision FROM store"));
    revision = rows.Int(0, 0);
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(revision, 2 * kChanges);
  EXPECT_TRUE(
      *listener->WaitForNotification(std::chrono::steady_clock::now() + std::chrono::seconds(30)));
}

TEST_F(PostgresPoolerTest, ATransactionLeavesNoSettingBehind) {
  auto database = PostgresDatabase::Open(uri_through_).value();
  ASSERT_TRUE(database
                  ->Write([](SqlSession& session) { return session.Run("SELECT 1").status(); },
                          [](SqlSession&) { return false; }, "")
                  .ok());
  // The connection of a second client. The pooler serves both clients over the same connection to
  // PostgreSQL.
  auto other = PostgresConnection::Open(uri_through_, {}).value();
  const auto rows =
      other
          ->RunBatch(
              "SELECT current_setting('search_path'), current_setting('statement_timeout'), "
              "current_setting('lock_timeout')")
          .value();
  EXPECT_EQ(rows.Text(0, 0), "\"$user\", public");
  EXPECT_EQ(rows.Text(0, 1), "0");
  EXPECT_EQ(rows.Text(0, 2), "0");
}

TEST_F(PostgresPoolerTest, ConnectionsThatWereCutBehindThePoolerAreNoError) {
  auto database = PostgresDatabase::Open(uri_through_).value();
  int runs = 0;
  const absl::Status status = database->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_RETURN_IF_ERROR(session.Run("SELECT 1").status());
    if (++runs == 1) server_.CutConnections(name_);
    return session.Run("SELECT 2").status();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(runs, 2);
}

TEST_F(PostgresPoolerTest, BlobsPassThrough) {
  auto database = PostgresDatabase::Open(uri_through_).value();
  PostgresBlobs blobs(std::move(database));
  const std::string content(static_cast<size_t>(PostgresBlobs::kChunkBytes + 10), 'x');
  const absl::Status written = blobs.Write(Sha256Hex(content), content);
  ASSERT_TRUE(written.ok()) << written;
  const auto read = blobs.Read(Sha256Hex(content), static_cast<int64_t>(content.size()));
  EXPECT_TRUE(read.ok() && *read == content) << read.status();
}

}  // namespace
}  // namespace phimap::testing
