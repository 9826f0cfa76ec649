#include "tests/contract/blobs_contract.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/sha256.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

}  // namespace

std::string BlobsContractTest::Write(const std::string& content) {
  std::string digest = Sha256Hex(content);
  const absl::Status written = blobs_->Write(digest, content);
  EXPECT_TRUE(written.ok()) << written;
  return digest;
}

TEST_P(BlobsContractTest, WhatWasWrittenIsReadBackWhateverItsSize) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, 4 * kMebibyte - 1, 4 * kMebibyte,
                             4 * kMebibyte + 1, 9 * kMebibyte}) {
    SCOPED_TRACE(size);
    const std::string content = SomeBytes(size);
    const std::string digest = Write(content);
    EXPECT_EQ(blobs_->Read(digest, size).value_or("?"), content);
    EXPECT_EQ(harness_->Open()->Read(digest, size).value_or("?"), content);
  }
}

TEST_P(BlobsContractTest, ARangeIsThosePlaces) {
  const std::string content = SomeBytes(9 * kMebibyte);
  const std::string digest = Write(content);
  const auto size = static_cast<int64_t>(content.size());
  for (const auto& [offset, bytes] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 0}, {0, 1}, {size - 1, 1}, {4 * kMebibyte - 3, 7}, {1, size - 2}, {0, size}}) {
    SCOPED_TRACE(absl::StrCat(offset, "+", bytes));
    EXPECT_EQ(blobs_->ReadRange(digest, size, offset, bytes).value_or("?"),
              content.substr(offset, bytes));
  }
}

TEST_P(BlobsContractTest, PiecesAreTheWhole) {
  const std::string content = SomeBytes(9 * kMebibyte + 5);
  const std::string digest = Write(content);
  for (const int64_t limit : {int64_t{100'000}, 4 * kMebibyte, 20 * kMebibyte}) {
    const auto reader = blobs_->OpenReader(digest, static_cast<int64_t>(content.size())).value();
    EXPECT_EQ(reader->size_bytes(), content.size());
    EXPECT_EQ(ReadAll(*reader, limit).value_or("?"), content);
  }
}

TEST_P(BlobsContractTest, WritingTwiceIsTheSameAsOnceAndHealsDamage) {
  const std::string digest = Write("the artifact");
  harness_->Damage(digest, "the artefact");
  EXPECT_TRUE(absl::IsDataLoss(blobs_->Read(digest, 12).status()));
  EXPECT_EQ(Write("the artifact"), digest);
  EXPECT_EQ(blobs_->Read(digest, 12).value_or("?"), "the artifact");
}

TEST_P(BlobsContractTest, DamageIsDataLossThatNamesTheDigest) {
  const std::string content = "the artifact";
  for (const std::string& damaged :
       {std::string("the artefact"), content.substr(0, 11), std::string(), content + "x"}) {
    SCOPED_TRACE(damaged);
    const std::string digest = Write(content);
    harness_->Damage(digest, damaged);
    const absl::Status status = blobs_->Read(digest, 12).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(digest));
    EXPECT_EQ(DetailOf(status)->metadata.at("digest"), digest);
    if (damaged.size() > content.size()) continue;  // A reader stops at the stated size.
    const auto reader = blobs_->OpenReader(digest, 12);
    EXPECT_TRUE(absl::IsDataLoss(reader.ok() ? ReadAll(**reader, 5).status() : reader.status()));
  }
}

TEST_P(BlobsContractTest, AMissingBlobIsDataLossAndMayBeRemovedAgain) {
  const std::string digest = Write("the artifact");
  const std::string other = Write("another one");
  EXPECT_TRUE(blobs_->Remove(digest).ok());
  EXPECT_TRUE(blobs_->Remove(digest).ok());
  EXPECT_EQ(blobs_->Read(other, 11).value_or("?"), "another one");
  EXPECT_TRUE(absl::IsDataLoss(blobs_->Read(digest, 12).status()));
  EXPECT_TRUE(absl::IsDataLoss(blobs_->ReadRange(digest, 12, 3, 4).status()));
  const auto reader = blobs_->OpenReader(digest, 12);
  EXPECT_TRUE(absl::IsDataLoss(reader.ok() ? ReadAll(**reader, 5).status() : reader.status()));
}

TEST_P(BlobsContractTest, TwoWritersOfOneBlobAndReadersOfItNeverSeeAPart) {
  constexpr int kRounds = 10;
  const std::string content = SomeBytes(5 * kMebibyte);
  const std::string digest = Write(content);
  const std::unique_ptr<Blobs> other = harness_->Open();
  const auto write = [&](Blobs& blobs) {
    for (int i = 0; i < kRounds; ++i) EXPECT_TRUE(blobs.Write(digest, content).ok());
  };
  std::thread one(write, std::ref(*blobs_));
  std::thread two(write, std::ref(*other));
  for (int i = 0; i < kRounds; ++i) {
    const absl::StatusOr<std::string> read =
        blobs_->Read(digest, static_cast<int64_t>(content.size()));
    EXPECT_TRUE(read.ok() && *read == content) << read.status();
  }
  one.join();
  two.join();
  EXPECT_TRUE(other->Read(digest, static_cast<int64_t>(content.size())).ok());
}

}  // namespace phimap::testing
