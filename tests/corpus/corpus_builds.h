// The builds of the corpus. A line of text describes what is built, and from which input.
#ifndef PHIMAP_TESTS_CORPUS_CORPUS_BUILDS_H_
#define PHIMAP_TESTS_CORPUS_CORPUS_BUILDS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/mapping/build/version_build.h"
#include "tests/corpus/corpus_inputs.h"

namespace phimap::testing {

// A line of builds.txt: its fields, separated by tabs.
struct CorpusBuild {
  // The name of the artifact's file, if the file is kept.
  std::string name;
  // The input: rows, sparse, texts, bytes or gram.
  std::string stream;
  std::string mapping;
  std::string kernel;
  // A list of the words "standardize", "names" and "seed=N"; may be empty.
  std::string options;
  // SHA-256 of the artifact.
  std::string digest = "";

  std::string ToText() const;
  static CorpusBuild FromText(const std::string& line);
  BuildSpec Spec() const;
};

// The CPU core whose OpenBLAS kernels the builds need, because the kernels of other cores add in
// another order. It is chosen by OPENBLAS_CORETYPE before the process starts.
inline constexpr char kCorpusBlasCore[] = "Haswell";

// Builds in the serving type that is given, or in that of the spec. REQUIRES: UseOneBlasThread was
// called.
absl::StatusOr<BuiltVersion> BuildOfCorpus(const CorpusBuild& build, const CorpusInputs& inputs,
                                           std::optional<FloatType> serving_type = std::nullopt);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_CORPUS_BUILDS_H_
