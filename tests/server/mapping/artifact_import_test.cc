#include "server/mapping/artifact_import.h"

#include <cctype>
#include <memory>
#include <optional>
#include <string>

#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "prometheus/gauge.h"
#include "server/store/sha256.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/certified_artifact.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

class ArtifactImportTest : public ::testing::Test {
 protected:
  void ExpectInvalid(const absl::Status& status, const std::string& reason) {
    EXPECT_THAT(status, IsError(Code::kInvalidArgument, reason, "chunk"));
  }
  // Imports `artifact` in pieces of `piece` bytes, and returns the result.
  absl::StatusOr<CertifiedVersion> Import(const std::string& artifact, size_t piece = 1000,
                                          const std::string& digest = "") {
    ArtifactImport import("letter", memory_);
    for (size_t at = 0; at < artifact.size(); at += piece) {
      const absl::Status taken = import.Append(artifact.substr(at, piece));
      if (!taken.ok()) return taken;
    }
    return import.Finish(digest.empty() ? Sha256Hex(artifact) : digest, *store_, registry_,
                         ChangeOrigin());
  }
  bool NothingStored() { return store_->ListMappings("", 9)->empty() && folder_.CountBlobs() == 0; }

  TemporaryFolder folder_;
  std::unique_ptr<SqliteStore> store_ =
      *SqliteStore::Open({.data_dir = folder_.path()}, PosixFileSystem());
  Metrics metrics_;
  Logger logger_{LogLevel::kOff};
  VersionRegistry registry_{{}, *store_, metrics_.registry(), logger_};
  prometheus::Gauge reserved_;
  MemoryBudget memory_{1 << 20, &reserved_};
};

TEST_F(ArtifactImportTest, PiecesOfAnySizeBecomeTheVersion) {
  const std::string artifact = CertifiedArtifact();
  int64_t number = 0;
  for (const size_t piece : {artifact.size(), size_t{1}, size_t{247}, size_t{248}, size_t{249}}) {
    const CertifiedVersion version = Import(artifact, piece).value();
    EXPECT_EQ(version.record.number, 1);  // every import gives the same version
    EXPECT_EQ(version.record.mapping, "letter");
    EXPECT_EQ(version.record.digest, Sha256Hex(artifact));
    EXPECT_EQ(version.record.input_columns, 5);
    EXPECT_EQ(version.record.output_columns, 7);
    EXPECT_EQ(version.record.serving_type, "float32");
    EXPECT_EQ(version.record.kernel_text, "rbf(gamma=0.5)");
    EXPECT_TRUE(version.record.imported);
    EXPECT_EQ(version.certificate.stream_rows, 100);
    number = version.record.number;
  }
  EXPECT_EQ(store_->GetMapping("letter")->version_count, number);
  EXPECT_EQ(store_->ReadArtifact(Sha256Hex(artifact)).value_or("?"), artifact);
  EXPECT_EQ(reserved_.Value(), 0);
}

TEST_F(ArtifactImportTest, TheRegistryKnowsTheNewestVersionAtOnce) {
  ASSERT_TRUE(Import(CertifiedArtifact({.seed = 1})).ok());
  int64_t number = 0;
  const auto newest = [&] {
    Mutex mutex;
    CondVar came;
    bool here = false;
    registry_.Acquire("letter", [&](absl::StatusOr<VersionHandle> version) {
      MutexLock lock(&mutex);
      number = version.ok() ? version->record().number : 0;
      here = true;
      came.NotifyAll();
    });
    MutexLock lock(&mutex);
    while (!here) came.Wait(&mutex);
    return number;
  };
  EXPECT_EQ(newest(), 1);
  ASSERT_TRUE(Import(CertifiedArtifact({.seed = 2})).ok());
  EXPECT_EQ(newest(), 2);
}

TEST_F(ArtifactImportTest, WhatIsNoArtifactIsRefusedAfterItsFirstBytes) {
  ArtifactImport text("letter", memory_);
  EXPECT_TRUE(text.Append(std::string(kArtifactHeadBytes - 1, 'x')).ok());
  ExpectInvalid(text.Append("x"), "ARTIFACT_MALFORMED");
  ArtifactImport at_once("letter", memory_);
  ExpectInvalid(at_once.Append(std::string(1 << 20, 'x')), "ARTIFACT_MALFORMED");
  std::string damaged = CertifiedArtifact().substr(0, kArtifactHeadBytes);
  damaged[100] ^= 1;
  ArtifactImport head("letter", memory_);
  ExpectInvalid(head.Append(damaged), "ARTIFACT_MALFORMED");
  std::string newer = CertifiedArtifact();
  WriteAt<uint32_t>(newer, 8, kArtifactFormat + 1);
  FixChecksums(newer);
  ArtifactImport of_a_newer_phimap("letter", memory_);
  EXPECT_EQ(of_a_newer_phimap.Append(newer.substr(0, kArtifactHeadBytes)).code(),
            Code::kUnimplemented);
}

// The head of an artifact. It states that the certificate has `certificate_bytes` bytes, and its
// checksums are correct.
std::string HeadStating(uint64_t certificate_bytes) {
  std::string head = CertifiedArtifact();
  WriteAt<uint64_t>(head, 32 + 4 * 24 + 16, certificate_bytes);
  FixChecksums(head);
  return head.substr(0, kArtifactHeadBytes);
}

TEST_F(ArtifactImportTest, MemoryIsReservedForTheStatedSizeAndTooMuchIsRefusedBeforeItComes) {
  const std::string artifact = CertifiedArtifact();
  ArtifactImport import("letter", memory_);
  ASSERT_TRUE(import.Append(artifact.substr(0, kArtifactHeadBytes)).ok());
  EXPECT_EQ(reserved_.Value(), 3.0 * artifact.size());
  {
    ArtifactImport large("letter", memory_);
    EXPECT_THAT(large.Append(HeadStating(1 << 20)),
                IsError(Code::kResourceExhausted, "BUILD_MEMORY_FULL"));
    ArtifactImport larger("letter", memory_);
    ExpectInvalid(larger.Append(HeadStating(uint64_t{1} << 40)), "ARTIFACT_MALFORMED");
    ArtifactImport wraps("letter", memory_);
    ExpectInvalid(wraps.Append(HeadStating(~uint64_t{0})), "ARTIFACT_MALFORMED");
  }
  EXPECT_EQ(reserved_.Value(), 3.0 * artifact.size());
}

TEST_F(ArtifactImportTest, MoreOrFewerBytesThanStatedAreRefused) {
  const std::string artifact = CertifiedArtifact();
  for (const size_t piece : {size_t{100}, artifact.size() + 1}) {
    ExpectInvalid(Import(artifact + "x", piece).status(), "ARTIFACT_TOO_LONG");
  }
  ExpectInvalid(Import(artifact.substr(0, artifact.size() - 1)).status(), "ARTIFACT_MALFORMED");
  ExpectInvalid(Import(artifact.substr(0, 100)).status(), "ARTIFACT_MALFORMED");
  ExpectInvalid(Import("").status(), "ARTIFACT_MALFORMED");
  EXPECT_TRUE(NothingStored());
}

TEST_F(ArtifactImportTest, AnotherDigestIsDataLossAndTextThatIsNoneIsInvalid) {
  const std::string artifact = CertifiedArtifact();
  const absl::Status other = Import(artifact, 1000, Sha256Hex("other")).status();
  EXPECT_EQ(other.code(), Code::kDataLoss) << other;
  EXPECT_EQ(DetailOf(other)->metadata.at("actual"), Sha256Hex(artifact));
  for (const std::string& digest : {std::string("x"), Sha256Hex("a") + "0", std::string(64, 'g')}) {
    EXPECT_THAT(Import(artifact, 1000, digest).status(),
                IsError(Code::kInvalidArgument, _, "digest"));
  }
  EXPECT_TRUE(NothingStored());
  std::string upper = Sha256Hex(artifact);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_TRUE(Import(artifact, 1000, upper).ok());
}

TEST_F(ArtifactImportTest, WhatDoesNotStandUpToReviewIsTheClientsFaultAndStoresNothing) {
  ExpectInvalid(Import(CertifiedArtifact(
                           {}, {.provenance = [](Provenance& p) { p.kernel_text = "\x1b[2J"; }}))
                    .status(),
                "TEXT_UNREADABLE");
  ExpectInvalid(
      Import(CertifiedArtifact({}, {.certificate = [](Certificate& c) { c.self_check->rows = 3; }}))
          .status(),
      "SELF_CHECK_SHAPE_MISMATCH");
  std::string damaged = CertifiedArtifact();
  damaged[200] ^= 1;
  ExpectInvalid(Import(damaged).status(), "ARTIFACT_MALFORMED");
  EXPECT_TRUE(NothingStored());
  EXPECT_EQ(reserved_.Value(), 0);
}

}  // namespace
}  // namespace phimap::testing
