// The order that durability rests on, observed across the file layer and SQLite's own writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/sha256.h"
#include "tests/server/sqlite/faulty_file_system.h"
#include "tests/server/sqlite/faulty_vfs.h"
#include "tests/server/sqlite/store_fixture.h"

namespace phimap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A commit is several writes to the log; how many is SQLite's business.
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

// The commit is the fsync of the write-ahead log: nothing of it is written before the blob is
// durable.
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

  // A second time the shard is known to be durable.
  plan_.Disarm();
  ASSERT_TRUE(store_->Publish(RequestFor("build-2"), "abc").ok());
  EXPECT_THAT(
      WithoutRepetitions(plan_.operations()),
      ElementsAre("create tmp/2.part", "write tmp/2.part", "fsync tmp/2.part", "close tmp/2.part",
                  "rename to blobs/ba/" + digest, "fsync directory blobs/ba",
                  "sqlite write phimap.sqlite-wal", "sqlite fsync phimap.sqlite-wal"));
}

// Another process may have created it and crashed before it synced the parent.
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
}  // namespace phimap
