// Builds of the corpus: a line of text says what is built, and from what.
#ifndef PHIMAP_TESTS_CORPUS_CORPUS_BUILDS_H_
#define PHIMAP_TESTS_CORPUS_CORPUS_BUILDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/mapping/build/version_build.h"
#include "tests/corpus/corpus_inputs.h"

namespace phimap::testing {

// A line of builds.txt: its fields, separated by tabs.
struct CorpusBuild {
  // Name of the artifact's file, if the file is kept.
  std::string name;
  // rows, sparse, texts, bytes or gram.
  std::string stream;
  std::string mapping;
  std::string kernel;
  // Words of "standardize", "names" and "seed=N", or nothing.
  std::string options;
  // SHA-256 of the artifact.
  std::string digest = "";

  std::string ToText() const;
  static CorpusBuild FromText(const std::string& line);
  BuildSpec Spec() const;
};

// The core that builds are compared for: OpenBLAS has other sums for others. A process asks for it
// with OPENBLAS_CORETYPE, before it starts.
inline constexpr char kCorpusBlasCore[] = "Haswell";

// REQUIRES: UseOneBlasThread was called.
absl::StatusOr<BuiltVersion> BuildOfCorpus(const CorpusBuild& build, const CorpusInputs& inputs);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_CORPUS_BUILDS_H_
