// Tests the order of disk operations that makes publishing durable. The operations are recorded in
// the file layer and in SQLite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/sha256.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/faulty_vfs.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Removes repetitions, because a commit writes to the log several times, and SQLite decides how
// often.
std::vector<std::string> WithoutRepetitions(const std::vector<std::string>& operations) {
  std::vector<std::string> result;
  for (const std::string& operation : operations) {
    if (result.empty() || result.back() != operation) result.push_back(operation);
  }
  return result;
}

class PublishOrderTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
  ManualClock clock_;
  FaultPlan plan_;
  ScopedFaultyVfs vfs_{&plan_};
  FaultyFileSystem file_system_{PosixFileSystem(), directory_.path(), &plan_};
  std::unique_ptr<SqliteStore> store_ = MustOpen(directory_.path(), &clock_, &file_system_);
};

// A commit becomes durable with the fsync of the write-ahead log. No byte of the commit may be
// written before the artifact's blob is durable.
TEST_F(PublishOrderTest, TheBlobIsDurableBeforeTheFirstByteOfTheCommit) {
  // SHA-256 of "abc".
  const std::string digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  plan_.Disarm();
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "abc").ok());
  EXPECT_THAT(WithoutRepetitions(plan_.operations()),
              ElementsAre("mkdir blobs/ba", "fsync directory blobs",  // a new shard
                          "create tmp/1.part", "write tmp/1.part", "fsync tmp/1.part",
                          "close tmp/1.part", "rename to blobs/ba/" + digest,
                          "fsync directory blobs/ba",  // the blob is durable here
                          "sqlite write phimap.sqlite-wal", "sqlite fsync phimap.sqlite-wal"));

  // The second time, the store already knows that the shard's directory is durable.
  plan_.Disarm();
  ASSERT_TRUE(store_->Publish(RequestFor("build-2"), "abc").ok());
  EXPECT_THAT(
      WithoutRepetitions(plan_.operations()),
      ElementsAre("create tmp/2.part", "write tmp/2.part", "fsync tmp/2.part", "close tmp/2.part",
                  "rename to blobs/ba/" + digest, "fsync directory blobs/ba",
                  "sqlite write phimap.sqlite-wal", "sqlite fsync phimap.sqlite-wal"));
}

// A shard's directory that exists at startup may not be durable: another process may have created
// it and crashed before it synced the parent directory.
TEST_F(PublishOrderTest, AShardFoundAtStartUpIsNotTakenForDurable) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "abc").ok());
  store_.reset();
  store_ = MustOpen(directory_.path(), &clock_, &file_system_);
  plan_.Disarm();
  ASSERT_TRUE(store_->Publish(RequestFor("build-2"), "abc").ok());
  const std::vector<std::string> operations = plan_.operations();
  EXPECT_EQ(operations[0], "mkdir blobs/ba");
  EXPECT_EQ(operations[1], "fsync directory blobs");
}

TEST_F(PublishOrderTest, ARefusedPublishDoesNotTouchTheDisk) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "abc").ok());
  plan_.Disarm();
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Publish(RequestFor("build-1"), "abc").status()));
  PublishRequest stale = RequestFor("build-2");
  stale.expected_newest = 0;
  EXPECT_TRUE(absl::IsAborted(store_->Publish(stale, "abc").status()));
  EXPECT_THAT(plan_.operations(), IsEmpty());
}

}  // namespace
}  // namespace phimap::testing
