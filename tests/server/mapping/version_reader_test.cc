#include "server/build/version_reader.h"

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "prometheus/gauge.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/certified_artifact.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kMiB = int64_t{1} << 20;

class VersionReaderTest : public ::testing::Test {
 protected:
  // Stores `artifact` as letter@1, without loading it into memory.
  void Store(const std::string& artifact) {
    VersionRecord version;
    version.mapping = std::string("letter");  // gcc 12 warns about assigning a literal here
    const auto stored = store_->Import(version, artifact).value();
    digest_ = stored.digest;
  }
  // Flips a bit in byte `at` of the artifact's file.
  void Damage(int64_t at) {
    std::fstream file(absl::StrCat(folder_.path(), "/blobs/", digest_.substr(0, 2), "/", digest_),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
    ASSERT_TRUE(file.good());
  }
  absl::StatusOr<CertifiedVersion> Read(MemoryBudget* memory = nullptr) {
    Reference reference{.mapping = "letter", .number = 1};
    return ReadCertifiedVersion(*store_, registry_, reference, memory);
  }
  void ExpectDamaged() {
    const absl::Status status = Read().status();
    EXPECT_THAT(status, IsError(Code::kDataLoss, "ARTIFACT_DAMAGED"));
    EXPECT_EQ(DetailOf(status)->metadata.at("digest"), digest_);
  }

  TemporaryFolder folder_;
  std::unique_ptr<SqliteStore> store_ =
      *SqliteStore::Open({.data_dir = folder_.path()}, PosixFileSystem());
  Metrics metrics_;
  Logger logger_{LogLevel::kOff};
  VersionRegistry registry_{{}, *store_, metrics_.registry(), logger_};
  std::string digest_;
};

TEST_F(VersionReaderTest, AVersionThatIsNotLiveIsShownWithItsCertificate) {
  Store(CertifiedArtifact({}, {.provenance =
                                   [](Provenance& provenance) {
                                     provenance.standardize = true;
                                     provenance.seed = 77;
                                   },
                               .certificate = [](Certificate& c) { c.stream_rows = 12'345; }}));
  const auto version = Read().value();
  EXPECT_EQ(version.certificate.stream_rows, 12'345);
  EXPECT_TRUE(version.standardize);
  EXPECT_EQ(version.seed, 77);
  EXPECT_FALSE(registry_.FindLive("letter", 1));
}

TEST_F(VersionReaderTest, AFileThatChangedIsDamagedWhereItIsReadAndNowhereElse) {
  const std::string artifact = CertifiedArtifact();
  Store(artifact);
  constexpr int kFeatures = 2;
  Damage(SectionOffset(artifact, kFeatures));
  EXPECT_TRUE(Read().ok());
  for (const int64_t at : {int64_t{40}, SectionOffset(artifact, 0), SectionOffset(artifact, 4)}) {
    SCOPED_TRACE(at);
    Damage(at);
    ExpectDamaged();
    Damage(at);
    EXPECT_TRUE(Read().ok());
  }
}

TEST_F(VersionReaderTest, ALargeCertificateIsChargedTwiceAndASmallOneNot) {
  Store(CertifiedArtifact(
      {}, {.provenance = nullptr, .certificate = [](Certificate& certificate) {
             certificate.warnings = {std::string(700'000, 'x'), std::string(700'000, 'y')};
           }}));
  prometheus::Gauge gauge;
  MemoryBudget little(2'800'000, &gauge);
  EXPECT_THAT(Read(&little).status(), IsError(Code::kResourceExhausted, "BUILD_MEMORY_FULL"));
  MemoryBudget enough(3 * kMiB, &gauge);
  EXPECT_TRUE(Read(&enough).ok());
  EXPECT_EQ(gauge.Value(), 0);
}

TEST_F(VersionReaderTest, ASmallCertificateIsReadThoughBuildsHoldAllMemory) {
  Store(CertifiedArtifact());
  prometheus::Gauge gauge;
  MemoryBudget none(0, &gauge);
  EXPECT_TRUE(Read(&none).ok());
}

}  // namespace
}  // namespace phimap::testing
