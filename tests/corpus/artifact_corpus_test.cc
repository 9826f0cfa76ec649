// Tests artifacts that earlier releases wrote. This release must read them and write the same bytes
// again. Their features must have the bits that their release served, and their certificates the
// same values.
//
// Each folder beside this file belongs to a release and is never changed (write_corpus.cc).
// NAME.phimap is an artifact, and NAME.txt is the record that its release made of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"
#include "tests/corpus/artifact_record.h"
#include "tests/corpus/corpus_inputs.h"
#include "tests/support/vector_targets.h"

namespace phimap {
namespace {

using testing::ArtifactRecord;
using testing::CorpusFolders;
using testing::CorpusInputs;
using testing::ReadCorpusFile;
using testing::ReadCorpusInputs;
using testing::RowForm;

std::vector<std::string> ArtifactPathsIn(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".phimap") paths.push_back(entry.path().string());
  }
  return paths;
}

TEST(ArtifactCorpusTest, EveryArtifactIsReadAndWrittenAgainByteForByte) {
  int64_t artifacts = 0;
  for (const std::string& folder : CorpusFolders()) {
    for (const std::string& path : ArtifactPathsIn(folder)) {
      SCOPED_TRACE(path);
      ++artifacts;
      const std::string stored = ReadCorpusFile(path);
      const absl::StatusOr<Artifact> artifact = DecodeArtifact(stored);
      ASSERT_TRUE(artifact.ok()) << artifact.status();
      EXPECT_TRUE(EncodeArtifact(*artifact).value() == stored);
      const absl::StatusOr<Certificate> certificate = DecodeCertificate(artifact->certificate);
      ASSERT_TRUE(certificate.ok()) << certificate.status();
      EXPECT_TRUE(EncodeCertificate(*certificate) == artifact->certificate);
    }
  }
  EXPECT_GE(artifacts, 60);
}

TEST(ArtifactCorpusTest, EveryArtifactAnswersWithTheBitsOfItsRelease) {
  int targets = 0;
  for (const testing::VectorTarget& target : testing::SupportedVectorTargets()) {
    if (!target.fused) continue;
    ++targets;
    const testing::ForcedVectorTarget forced(target);
    for (const std::string& folder : CorpusFolders()) {
      const CorpusInputs inputs = ReadCorpusInputs(folder);
      for (const std::string& path : ArtifactPathsIn(folder)) {
        const Artifact artifact = DecodeArtifact(ReadCorpusFile(path)).value();
        const std::string expected =
            ReadCorpusFile(std::filesystem::path(path).replace_extension(".txt").string());
        for (const RowForm form : {RowForm::kFloat64, RowForm::kFloat32, RowForm::kSparse}) {
          EXPECT_EQ(ArtifactRecord(artifact, inputs, form), expected)
              << target.name << ": " << path << ", form " << static_cast<int>(form);
        }
      }
    }
  }
  if (targets == 0) GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
}

}  // namespace
}  // namespace phimap
