// Writes records of a kernel expression's properties and values, and of build costs, as text that
// contains every bit of every number.
#ifndef PHIMAP_TESTS_CORPUS_KERNEL_RECORD_H_
#define PHIMAP_TESTS_CORPUS_KERNEL_RECORD_H_

#include <string>

#include "core/mapping/spec/build_spec.h"
#include "tests/corpus/corpus_inputs.h"

namespace phimap::testing {

// Returns the canonical text, properties, compiled program, work, values in float64, features in
// both serving types, and rounding bounds. `gamma=scale` is resolved to 0.5 and `gamma=median` to
// 0.25.
std::string KernelRecord(const std::string& kernel, const CorpusInputs& inputs);

// Returns the results of CostOfBuild and ReservedBytes for a hundred thousand rows of five columns.
std::string CostRecord(const BuildSpec& spec);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_KERNEL_RECORD_H_
