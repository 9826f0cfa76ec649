// The parameters of mappings, each described once. A mapping lists the names of its parameters.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_PARAMETERS_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/parameter.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

// A word by its place in Parameter::words; −1: none was chosen.
struct WordField {
  int (*get)(const MappingSpec& spec);
  void (*set)(MappingSpec& spec, int word);
};

// A count, or a call that finds the count: auto(residual=0.01, most=2048).
struct FoundField {
  int64_t MappingSpec::*count;
  const CountRule* MappingSpec::*rule;
  double MappingSpec::*goal;
};

// A value as typed fields bring it; a word as in Parameter::words.
using ParameterValue = std::variant<int64_t, double, bool, std::string>;

struct MappingParameter {
  Parameter described;
  // Member of a spec that holds its value.
  std::variant<int64_t MappingSpec::*, double MappingSpec::*, bool MappingSpec::*, WordField,
               FoundField>
      field;
  // Canonical texts name it at its default too.
  bool always_written = false;

  // Whether the parameter has the value that it has when the text omits it.
  bool IsDefault(const MappingSpec& spec) const;
  // "500", "gaussian", "true".
  std::string ValueText(const MappingSpec& spec) const;
  // REQUIRES: a value of the parameter's type, a word one of its words; of FoundField a count.
  void Set(const ParameterValue& value, MappingSpec& spec) const;
  // INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) with the parameter as field. A value that is left out
  // passes unless the parameter is required.
  absl::Status CheckRange(const MappingSpec& spec) const;
};

// All parameters. Thread-safe.
const std::vector<MappingParameter>& MappingParameters();
// Null for an unknown name.
const MappingParameter* FindMappingParameter(absl::string_view name);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_PARAMETERS_H_
