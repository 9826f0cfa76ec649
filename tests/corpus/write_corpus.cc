// Writes the corpus of a release into a new folder:
//
//     OPENBLAS_CORETYPE=Haswell write_corpus tests/corpus/VERSION
//
// The corpora of earlier releases are never changed, because users have stored the artifacts of
// these releases.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/digest/sha256.h"
#include "core/linalg/blas.h"
#include "core/plan/artifact.h"
#include "tests/corpus/artifact_record.h"
#include "tests/corpus/artifact_sections.h"
#include "tests/corpus/corpus_cases.h"
#include "tests/corpus/kernel_record.h"

namespace phimap::testing {
namespace {

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string CsvOf(const Matrix<double>& numbers) {
  std::string csv;
  for (int64_t i = 0; i < numbers.rows(); ++i) {
    for (int64_t j = 0; j < numbers.cols(); ++j) {
      // Six digits are enough for multiples of 1/8.
      absl::StrAppend(&csv, j == 0 ? "" : ",", numbers(i, j));
    }
    absl::StrAppend(&csv, "\n");
  }
  return csv;
}

void WriteInputs(const std::string& folder, const CorpusInputs& inputs) {
  Write(folder + "/stream.csv", CsvOf(inputs.stream));
  Write(folder + "/rows.csv", CsvOf(inputs.rows));
  Write(folder + "/values.csv", CsvOf(inputs.values));
  std::string texts;
  for (const std::string& text : inputs.texts) absl::StrAppend(&texts, text, "\n");
  Write(folder + "/stream.txt", texts);
}

void WriteArtifact(const std::string& folder, const std::string& name, const std::string& bytes,
                   const CorpusInputs& inputs) {
  Write(absl::StrCat(folder, "/", name, ".phimap"), bytes);
  Write(absl::StrCat(folder, "/", name, ".txt"),
        ArtifactRecord(DecodeArtifact(bytes).value(), inputs));
}

bool WriteBuilds(const std::string& folder, const CorpusInputs& inputs) {
  std::string builds;
  std::string costs;
  std::string sections;
  for (CorpusBuild build : CorpusBuildCases()) {
    const absl::StatusOr<BuiltVersion> built = BuildOfCorpus(build, inputs);
    if (!built.ok()) {
      std::fprintf(stderr, "%s: %s\n", build.name.c_str(), built.status().ToString().c_str());
      return false;
    }
    Sha256 hash;
    hash.Update(built->bytes);
    build.digest = hash.Hex();
    absl::StrAppend(&sections, build.name, "\t", FloatTypeName(built->serving_type), "\t",
                    SectionsDigest(built->bytes), "\n");
    absl::StrAppend(&builds, build.ToText(), "\n");
    absl::StrAppend(&costs, build.name, " ", CostRecord(build.Spec()));
    if (build.name[0] != '-') WriteArtifact(folder, build.name, built->bytes, inputs);
  }
  Write(folder + "/builds.txt", builds);
  Write(folder + "/sections.txt", sections);
  Write(folder + "/costs.txt", costs);
  return true;
}

void WriteRest(const std::string& folder, const CorpusInputs& inputs) {
  for (CorpusPlan& made : CorpusPlanCases()) {
    const Artifact artifact{
        .plan = std::move(made.plan),
        .provenance = {.spec_text = "f2(landmarks=6)", .kernel_text = "rbf(gamma=0.5)"},
        .certificate = EncodeCertificate(Certificate{})};
    WriteArtifact(folder, made.name, EncodeArtifact(artifact).value(), inputs);
  }
  std::string kernels;
  for (const std::string& kernel : CorpusKernelCases()) {
    absl::StrAppend(&kernels, KernelRecord(kernel, inputs));
  }
  Write(folder + "/kernels.txt", kernels);
}

int Main(const std::string& folder) {
  if (BlasCoreName() != kCorpusBlasCore) {
    std::fprintf(stderr,
                 "write_corpus: set OPENBLAS_CORETYPE=%s; now OpenBLAS uses the kernels of %s\n",
                 kCorpusBlasCore, BlasCoreName().c_str());
    return 1;
  }
  if (!std::filesystem::create_directory(folder)) {
    std::fprintf(stderr, "write_corpus: %s already exists, but each release needs a new folder\n",
                 folder.c_str());
    return 1;
  }
  UseOneBlasThread();
  WriteInputs(folder, MakeCorpusInputs());
  const CorpusInputs inputs = ReadCorpusInputs(folder);
  if (!WriteBuilds(folder, inputs)) return 1;
  WriteRest(folder, inputs);
  return 0;
}

}  // namespace
}  // namespace phimap::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_corpus tests/corpus/VERSION\n");
    return 2;
  }
  return phimap::testing::Main(argv[1]);
}
