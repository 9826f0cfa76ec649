// Cases that write_corpus writes: lists of builds, plans and kernels, which grow with the product.
#ifndef PHIMAP_TESTS_CORPUS_CORPUS_CASES_H_
#define PHIMAP_TESTS_CORPUS_CORPUS_CASES_H_

#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "tests/corpus/corpus_builds.h"
#include "tests/corpus/corpus_inputs.h"

namespace phimap::testing {

CorpusInputs MakeCorpusInputs();

// A name that begins with "-" says that the digest alone is kept.
std::vector<CorpusBuild> CorpusBuildCases();

// Plans of stages that no builder combines so, or none emits any more.
struct CorpusPlan {
  std::string name;
  Plan plan;
};
std::vector<CorpusPlan> CorpusPlanCases();

std::vector<std::string> CorpusKernelCases();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_CORPUS_CASES_H_
