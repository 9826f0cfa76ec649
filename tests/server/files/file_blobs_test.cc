#include "server/files/file_blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/sha256.h"
#include "tests/server/sqlite/store_fixture.h"

namespace phimap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileBlobsTest : public testing::Test {
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

TEST_F(FileBlobsTest, OnlyUnreferencedBlobsAreRemovedAndForeignFilesStay) {
  const std::string other = Sha256Hex("other");
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  ASSERT_TRUE(blobs_.Write(other, "other").ok());
  const std::string foreign = directory_.path() + "/blobs/" + digest_.substr(0, 2) + "/README";
  WriteWhole(foreign, "not ours");
  EXPECT_EQ(*blobs_.RemoveUnreferenced({digest_}), 1);
  EXPECT_EQ(*blobs_.Read(digest_, 12), content_);
  EXPECT_FALSE(std::filesystem::exists(blobs_.BlobPath(other)));
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST_F(FileBlobsTest, TemporaryFilesAreRemoved) {
  WriteWhole(directory_.path() + "/tmp/0.part", "half");
  EXPECT_EQ(*blobs_.RemoveTemporary(), 1);
  EXPECT_THAT(TemporaryFilesIn(directory_.path()), IsEmpty());
}

}  // namespace
}  // namespace phimap
