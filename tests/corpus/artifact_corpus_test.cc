// Tests artifacts that earlier releases wrote. This release must read them and write the same bytes
// again. Their features must have the bits that their release served, and their certificates the
// same values.
//
// Each folder beside this file belongs to a release and is never changed (write_corpus.cc).
// NAME.phimap is an artifact, and NAME.txt is the record that its release made of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"
#include "tests/corpus/artifact_record.h"
#include "tests/corpus/corpus_inputs.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

std::vector<std::string> ArtifactPathsIn(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".phimap") paths.push_back(entry.path().string());
  }
  return paths;
}

// A record whose residuals are apart from the rest. Release 0.1.0 served one number a row, which
// now is the sum of two numbers, and rounded it once more.
struct SplitRecord {
  static SplitRecord Of(const std::string& record) {
    const std::string kHead = "\nresiduals ";
    const size_t at = record.find(kHead);
    if (at == std::string::npos) return {.exact = record, .residuals = {}};
    SplitRecord split{.exact = record.substr(0, at), .residuals = {}};
    std::istringstream numbers(record.substr(at + kHead.size()));
    for (std::string number; numbers >> number;) {
      split.residuals.push_back(std::strtod(number.c_str(), nullptr));
    }
    EXPECT_FALSE(split.residuals.empty());
    return split;
  }

  std::string exact;
  std::vector<double> residuals;
};

TEST(ArtifactCorpusTest, EveryArtifactIsReadAndWrittenAgainByteForByte) {
  int64_t artifacts = 0;
  for (const std::string& folder : CorpusFolders()) {
    for (const std::string& path : ArtifactPathsIn(folder)) {
      SCOPED_TRACE(path);
      ++artifacts;
      const std::string stored = ReadCorpusFile(path);
      const Artifact artifact = DecodeArtifact(stored).value();
      EXPECT_TRUE(EncodeArtifact(artifact).value() == stored);
      const Certificate certificate = DecodeCertificate(artifact.certificate).value();
      EXPECT_TRUE(EncodeCertificate(certificate) == artifact.certificate);
    }
  }
  EXPECT_GE(artifacts, 60);
}

TEST(ArtifactCorpusTest, EveryArtifactAnswersWithTheBitsOfItsRelease) {
  int targets = 0;
  for (const VectorTarget& target : SupportedVectorTargets()) {
    if (!target.fused) continue;
    ++targets;
    const ForcedVectorTarget forced(target);
    for (const std::string& folder : CorpusFolders()) {
      const CorpusInputs inputs = ReadCorpusInputs(folder);
      for (const std::string& path : ArtifactPathsIn(folder)) {
        const Artifact artifact = DecodeArtifact(ReadCorpusFile(path)).value();
        const SplitRecord released = SplitRecord::Of(
            ReadCorpusFile(std::filesystem::path(path).replace_extension(".txt").string()));
        for (const RowForm form : {RowForm::kFloat64, RowForm::kFloat32, RowForm::kSparse}) {
          SCOPED_TRACE(absl::StrCat(target.name, ": ", path, ", form ", static_cast<int>(form)));
          const SplitRecord now = SplitRecord::Of(ArtifactRecord(artifact, inputs, form));
          EXPECT_EQ(now.exact, released.exact);
          ASSERT_EQ(now.residuals.size(), released.residuals.size());
          for (size_t i = 0; i < now.residuals.size(); ++i) {
            EXPECT_NEAR(now.residuals[i], released.residuals[i], 0x1p-49 * released.residuals[i]);
          }
        }
      }
    }
  }
  if (targets == 0) GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
}

}  // namespace
}  // namespace phimap::testing
