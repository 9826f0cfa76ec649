// The builds, plans and kernels for which write_corpus writes records. Later releases add cases.
#ifndef PHIMAP_TESTS_CORPUS_CORPUS_CASES_H_
#define PHIMAP_TESTS_CORPUS_CORPUS_CASES_H_

#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "tests/corpus/corpus_builds.h"
#include "tests/corpus/corpus_inputs.h"

namespace phimap::testing {

CorpusInputs MakeCorpusInputs();

// Returns the builds. If a build's name begins with "-", only the digest of its artifact is kept.
std::vector<CorpusBuild> CorpusBuildCases();

// A plan whose combination of stages is not, or no longer, the result of any build.
struct CorpusPlan {
  std::string name;
  Plan plan;
};
std::vector<CorpusPlan> CorpusPlanCases();

std::vector<std::string> CorpusKernelCases();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_CORPUS_CASES_H_
