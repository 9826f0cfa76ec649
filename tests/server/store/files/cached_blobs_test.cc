// Tests blobs with cached copies: the contract of every kind of blobs, and the properties of the
// cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/store/files/artifact_cache.h"
#include "server/store/files/file_blobs.h"
#include "server/store/sha256.h"
#include "tests/contract/blobs_contract.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<FileBlobs> OriginIn(const std::string& folder) {
  auto blobs = std::make_unique<FileBlobs>(folder, PosixFileSystem());
  EXPECT_TRUE(blobs->CreateDirectories().ok());
  return blobs;
}

class CachedHarness : public BlobsHarness {
 public:
  std::unique_ptr<Blobs> Open() override {
    caches_.push_back(absl::StrCat(directory_.path(), "/cache", caches_.size()));
    std::unique_ptr<ArtifactCache> cache =
        ArtifactCache::Open(caches_.back(), int64_t{1} << 30, PosixFileSystem(), logger_).value();
    return std::make_unique<CachedBlobs>(OriginIn(directory_.path()), std::move(cache));
  }
  // Damages the blob and all of its cached copies.
  void Damage(const std::string& digest, const std::string& content) override {
    WriteWhole(OriginIn(directory_.path())->BlobPath(digest), content);
    for (const std::string& cache : caches_) {
      const std::string copy = absl::StrCat(cache, "/artifacts/", digest);
      if (fs::exists(copy)) WriteWhole(copy, content);
    }
  }

 private:
  const Logger logger_{LogLevel::kOff};
  TemporaryDirectory directory_;
  std::vector<std::string> caches_;
};

INSTANTIATE_TEST_SUITE_P(Cached, BlobsContractTest,
                         ::testing::Values(BlobsHarnessFactory{
                             "Cached", [] { return std::make_unique<CachedHarness>(); }}),
                         BlobsHarnessName);

class CachedBlobsTest : public ::testing::Test {
 protected:
  std::shared_ptr<ArtifactCache> OpenCache(int64_t max_bytes,
                                           FileSystem* file_system = PosixFileSystem()) {
    return ArtifactCache::Open(folder(), max_bytes, file_system, logger_).value();
  }
  std::string folder() const { return directory_.path() + "/cache"; }
  std::string CopyOf(const std::string& content) const {
    return absl::StrCat(folder(), "/artifacts/", Sha256Hex(content));
  }
  // Reads the blob whose content is `content` through `cache`. Returns "?" if that fails.
  std::string Read(const std::shared_ptr<ArtifactCache>& cache, const std::string& content) {
    return CachedBlobs(OriginIn(directory_.path()), cache)
        .Read(Sha256Hex(content), static_cast<int64_t>(content.size()))
        .value_or("?");
  }
  void WriteAtOrigin(const std::string& content) {
    EXPECT_TRUE(OriginIn(directory_.path())->Write(Sha256Hex(content), content).ok());
  }
  void RemoveAtOrigin(const std::string& content) {
    EXPECT_TRUE(OriginIn(directory_.path())->Remove(Sha256Hex(content)).ok());
  }
  std::vector<std::string> CopiesThere() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder() + "/artifacts")) {
      if (entry.path().filename() != "lock") names.push_back(entry.path().filename());
    }
    return names;
  }

  const Logger logger_{LogLevel::kOff};
  TemporaryDirectory directory_;
};

TEST_F(CachedBlobsTest, WhatWasReadOnceIsReadWithoutTheOriginAlsoAfterARestart) {
  WriteAtOrigin("one");
  auto cache = OpenCache(100);
  EXPECT_EQ(Read(cache, "one"), "one");
  RemoveAtOrigin("one");
  EXPECT_EQ(Read(cache, "one"), "one");
  EXPECT_EQ(cache->statistics().hits, 1);
  EXPECT_EQ(cache->statistics().misses, 1);
  cache.reset();
  cache = OpenCache(100);
  EXPECT_EQ(cache->statistics().bytes, 3);
  EXPECT_EQ(Read(cache, "one"), "one");
}

TEST_F(CachedBlobsTest, ADamagedCopyIsFetchedAgain) {
  WriteAtOrigin("one");
  const auto cache = OpenCache(100);
  EXPECT_EQ(Read(cache, "one"), "one");
  for (const char* damaged : {"0ne", "on", "", "one and more"}) {
    WriteWhole(CopyOf("one"), damaged);
    EXPECT_EQ(Read(cache, "one"), "one") << damaged;
    EXPECT_EQ(ReadWhole(CopyOf("one")), "one");
  }
  EXPECT_EQ(cache->statistics().damaged, 4);
  EXPECT_EQ(cache->statistics().bytes, 3);
}

TEST_F(CachedBlobsTest, ACopyThatSomebodyRemovedIsFetchedAgain) {
  WriteAtOrigin("one");
  const auto cache = OpenCache(100);
  EXPECT_EQ(Read(cache, "one"), "one");
  fs::remove(CopyOf("one"));
  EXPECT_EQ(Read(cache, "one"), "one");
  EXPECT_EQ(cache->statistics().damaged, 0);
  EXPECT_EQ(cache->statistics().artifacts, 1);
}

TEST_F(CachedBlobsTest, TheLongestUnusedMakesRoomAndTheLimitHolds) {
  for (const char* content : {"one", "two", "six", "a long one"}) WriteAtOrigin(content);
  const auto cache = OpenCache(7);
  EXPECT_EQ(Read(cache, "one"), "one");
  EXPECT_EQ(Read(cache, "two"), "two");
  EXPECT_EQ(Read(cache, "one"), "one");
  EXPECT_EQ(Read(cache, "six"), "six");
  EXPECT_THAT(CopiesThere(), UnorderedElementsAre(Sha256Hex("one"), Sha256Hex("six")));
  EXPECT_EQ(cache->statistics().evictions, 1);
  EXPECT_EQ(cache->statistics().bytes, 6);
  // A blob that is larger than the whole cache is not cached, and evicts nothing.
  EXPECT_EQ(Read(cache, "a long one"), "a long one");
  EXPECT_EQ(cache->statistics().bytes, 6);
}

TEST_F(CachedBlobsTest, AFolderThatHoldsMoreThanTheLimitAtStartIsCutToIt) {
  for (const char* content : {"one", "two"}) WriteAtOrigin(content);
  auto cache = OpenCache(6);
  Read(cache, "one");
  Read(cache, "two");
  WriteWhole(CopyOf("one") + ".7", "half a co");
  cache.reset();
  cache = OpenCache(4);
  EXPECT_EQ(CopiesThere().size(), 1);
  EXPECT_EQ(cache->statistics().bytes, 3);
}

TEST_F(CachedBlobsTest, OthersMayNotLookInto) {
  fs::create_directories(folder() + "/artifacts");
  fs::permissions(folder() + "/artifacts", fs::perms::all);
  OpenCache(10);
  struct stat info;
  ASSERT_EQ(stat((folder() + "/artifacts").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700);
}

TEST_F(CachedBlobsTest, ASecondServerIsKeptOut) {
  const auto cache = OpenCache(10);
  const auto second = ArtifactCache::Open(folder(), 10, PosixFileSystem(), logger_);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
}

// No matter which operation on the cache's disk fails, readers get their bytes, and no partial copy
// is kept.
TEST_F(CachedBlobsTest, ADiskThatFailsCostsCopiesAndNothingElse) {
  WriteAtOrigin("one");
  FaultPlan plan;
  FaultyFileSystem faulty(PosixFileSystem(), folder(), &plan);
  const auto cache = OpenCache(10, &faulty);
  int failures = 0;
  for (int index = 0;; ++index) {
    plan.Arm(Fault::kError, ENOSPC, index);
    EXPECT_EQ(Read(cache, "one"), "one") << index;
    if (!plan.reached()) break;
    plan.Disarm();
    ++failures;
    EXPECT_EQ(Read(cache, "one"), "one") << index;
    cache->Drop(Sha256Hex("one"));
    EXPECT_THAT(CopiesThere(), IsEmpty()) << index;
  }
  // Making a copy takes at least three disk operations that can fail, such as opening, writing and
  // renaming the file.
  EXPECT_GE(failures, 3);
  EXPECT_EQ(cache->statistics().unwritten, failures);
}

}  // namespace
}  // namespace phimap::testing
