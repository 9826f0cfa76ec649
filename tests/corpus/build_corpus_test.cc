// Tests that the specs, seeds and streams of earlier releases, with the serving type that they got
// then, still build artifacts whose sections have the same bytes. Only the certificate may say
// more, or something else where an earlier release was wrong: its fields are compared one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/digest/sha256.h"
#include "core/linalg/blas.h"
#include "core/plan/artifact.h"
#include "tests/corpus/artifact_record.h"
#include "tests/corpus/artifact_sections.h"
#include "tests/corpus/corpus_builds.h"
#include "tests/corpus/corpus_inputs.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

bool HasFusedTarget() {
  for (const VectorTarget& target : SupportedVectorTargets()) {
    if (target.fused) return true;
  }
  return false;
}

// Fields of the certificate that are measured otherwise after 0.1: the spectrum is over held-out
// rows, and the interval of the kernel error is absent where few rows carry the mean.
constexpr std::array<absl::string_view, 4> kMeasuredOtherwise = {
    "spectrum ", "eigenvalues ", "effective_dimension ", "kernel_error_interval "};

// Whether a line of a certificate's record may differ from that of the earlier release.
bool MayDiffer(absl::string_view line, const CorpusBuild& build) {
  // No theorem says that orthogonal frequencies have the smaller variance.
  if (absl::StrContains(build.mapping, "orthogonal=true") && absl::StartsWith(line, "theorem ")) {
    return true;
  }
  return std::any_of(kMeasuredOtherwise.begin(), kMeasuredOtherwise.end(),
                     [&](absl::string_view name) { return absl::StartsWith(line, name); });
}

// Checks that the certificate has every field that it had in the stored artifact, with its value.
void ExpectFieldsOf(const std::string& stored, const BuiltVersion& built,
                    const CorpusBuild& build) {
  const Artifact artifact = DecodeArtifact(stored).value();
  const Certificate before = DecodeCertificate(artifact.certificate).value();
  const std::vector<std::string> lines = absl::StrSplit(CertificateRecord(built.certificate), '\n');
  int compared = 0;
  const std::vector<std::string> stored_lines = absl::StrSplit(CertificateRecord(before), '\n');
  for (const std::string& line : stored_lines) {
    if (MayDiffer(line, build)) continue;
    ++compared;
    EXPECT_TRUE(std::find(lines.begin(), lines.end(), line) != lines.end())
        << "the stored certificate has\n"
        << line;
  }
  EXPECT_GE(compared, 8);
}

TEST(BuildCorpusTest, EqualSpecsSeedsAndStreamsGiveTheSectionsOfTheirRelease) {
  if (!HasFusedTarget()) GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
  ASSERT_EQ(BlasCoreName(), kCorpusBlasCore)
      << "OPENBLAS_CORETYPE must be " << kCorpusBlasCore << ", as ctest sets it";
  UseOneBlasThread();
  int64_t builds = 0;
  for (const std::string& folder : CorpusFolders()) {
    const CorpusInputs inputs = ReadCorpusInputs(folder);
    const std::vector<std::string> lines = LinesOf(ReadCorpusFile(folder + "/builds.txt"));
    const std::vector<std::string> sections = LinesOf(ReadCorpusFile(folder + "/sections.txt"));
    ASSERT_EQ(sections.size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      SCOPED_TRACE(lines[i]);
      ++builds;
      const CorpusBuild build = CorpusBuild::FromText(lines[i]);
      // Name, serving type, and digest of all sections but the certificate.
      const std::vector<std::string> fields = absl::StrSplit(sections[i], '\t');
      ASSERT_EQ(fields.size(), 3u);
      ASSERT_EQ(fields[0], build.name);
      const FloatType type = fields[1] == "float32" ? FloatType::kFloat32 : FloatType::kFloat64;
      const BuiltVersion built = BuildOfCorpus(build, inputs, type).value();
      EXPECT_EQ(SectionsDigest(built.bytes), fields[2]);
      const std::string path = folder + "/" + build.name + ".phimap";
      if (!std::filesystem::exists(path)) continue;
      const std::string stored = ReadCorpusFile(path);
      // The stored artifact is that of its release, and so is its digest without the certificate.
      Sha256 hash;
      hash.Update(stored);
      EXPECT_EQ(hash.Hex(), build.digest);
      EXPECT_EQ(SectionsDigest(stored), fields[2]);
      ExpectFieldsOf(stored, built, build);
    }
  }
  EXPECT_GE(builds, 60);
}

}  // namespace
}  // namespace phimap::testing
