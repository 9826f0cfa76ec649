#include "server/files/file_blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "server/store/sha256.h"
#include "tests/server/sqlite/store_fixture.h"

namespace phimap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileBlobsTest : public ::testing::Test {
 protected:
  FileBlobsTest() { EXPECT_TRUE(blobs_.CreateDirectories().ok()); }

  TemporaryDirectory directory_;
  FileBlobs blobs_{directory_.path(), PosixFileSystem()};
  const std::string content_ = "the artifact";
  const std::string digest_ = Sha256Hex(content_);
};

TEST_F(FileBlobsTest, ABlobLiesInItsShardUnderItsDigest) {
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  EXPECT_EQ(
      ReadWhole(absl::StrCat(directory_.path(), "/blobs/", digest_.substr(0, 2), "/", digest_)),
      content_);
  EXPECT_EQ(*blobs_.Read(digest_, 12), content_);
  EXPECT_THAT(TemporaryFilesIn(directory_.path()), IsEmpty());
}

TEST_F(FileBlobsTest, WritingTwiceIsTheSameAsOnceAndHealsDamage) {
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  WriteWhole(blobs_.BlobPath(digest_), "damaged");
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  EXPECT_EQ(*blobs_.Read(digest_, 12), content_);
  EXPECT_THAT(BlobsIn(directory_.path()), ElementsAre(digest_));
}

TEST_F(FileBlobsTest, DamageIsDataLossThatNamesDigestAndPath) {
  std::string flipped = content_;
  flipped[3] ^= 1;
  for (const std::string& damaged :
       {flipped, content_.substr(0, 11), std::string(), content_ + "x"}) {
    SCOPED_TRACE(damaged);
    ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
    WriteWhole(blobs_.BlobPath(digest_), damaged);
    const absl::Status status = blobs_.Read(digest_, 12).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(blobs_.BlobPath(digest_)));
    EXPECT_EQ(DetailOf(status)->metadata.at("digest"), digest_);
  }
}

TEST_F(FileBlobsTest, AMissingBlobIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(blobs_.Read(digest_, 12).status()));
  EXPECT_TRUE(blobs_.Remove(digest_).ok());
}

TEST_F(FileBlobsTest, ListHasBlobsWithTheirWriteTimesAndNoForeignFiles) {
  const absl::Time before = absl::Now() - absl::Seconds(1);  // A file system's clock may be coarse.
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  WriteWhole(directory_.path() + "/blobs/" + digest_.substr(0, 2) + "/README", "not ours");
  const auto listed = blobs_.List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1);
  EXPECT_EQ((*listed)[0].digest, digest_);
  EXPECT_EQ((*listed)[0].size_bytes, 12);
  EXPECT_GE((*listed)[0].write_time, before);
  EXPECT_LE((*listed)[0].write_time, absl::Now() + absl::Seconds(1));
}

TEST_F(FileBlobsTest, RemainsAreRemovedOnceOldAndForeignFilesStay) {
  WriteWhole(directory_.path() + "/tmp/0.part", "half");
  WriteWhole(directory_.path() + "/tmp/notes", "not ours");
  WriteWhole(directory_.path() + "/quarantine/" + digest_, content_);
  WriteWhole(directory_.path() + "/quarantine/" + digest_ + ".damaged", "for people");
  EXPECT_EQ(*blobs_.RemoveRemains(absl::Now() - absl::Hours(1)), 0);
  EXPECT_EQ(*blobs_.RemoveRemains(absl::Now() + absl::Hours(1)), 2);
  EXPECT_THAT(TemporaryFilesIn(directory_.path()), ElementsAre("notes"));
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/quarantine/" + digest_ + ".damaged"));
}

}  // namespace
}  // namespace phimap
