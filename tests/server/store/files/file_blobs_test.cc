#include "server/store/files/file_blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "server/store/sha256.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class FileBlobsTest : public ::testing::Test {
 protected:
  FileBlobsTest() { EXPECT_TRUE(blobs_.CreateDirectories().ok()); }

  TemporaryDirectory directory_;
  FileBlobs blobs_{directory_.path(), PosixFileSystem()};
  const std::string content_ = "the artifact";
  const std::string digest_ = Sha256Hex(content_);
};

TEST_F(FileBlobsTest, ABlobLiesInItsShardUnderItsDigestAndDamageNamesItsPath) {
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  EXPECT_EQ(
      ReadWhole(absl::StrCat(directory_.path(), "/blobs/", digest_.substr(0, 2), "/", digest_)),
      content_);
  EXPECT_THAT(TemporaryFilesIn(directory_.path()), IsEmpty());
  WriteWhole(blobs_.BlobPath(digest_), "damaged");
  EXPECT_THAT(blobs_.Read(digest_, 12).status(),
              IsError(StatusCode::kDataLoss, _, _, HasSubstr(blobs_.BlobPath(digest_))));
}

TEST_F(FileBlobsTest, ListHasBlobsWithTheirWriteTimesAndNoForeignFiles) {
  const absl::Time before = absl::Now() - absl::Seconds(1);  // A file system's clock may be coarse.
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  WriteWhole(directory_.path() + "/blobs/" + digest_.substr(0, 2) + "/README", "not ours");
  const auto listed = blobs_.List().value();
  ASSERT_EQ(listed.size(), 1);
  EXPECT_EQ(listed[0].digest, digest_);
  EXPECT_EQ(listed[0].size_bytes, 12);
  EXPECT_GE(listed[0].write_time, before);
  EXPECT_LE(listed[0].write_time, absl::Now() + absl::Seconds(1));
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
}  // namespace phimap::testing
