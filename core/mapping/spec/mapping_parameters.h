// The parameters of mappings. Each is described here once; a mapping lists the names of its
// parameters.
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
#include "core/mapping/spec/family.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

// Access to a member that is one of several words. A word is given by its index in
// Parameter::words; −1 means that none was chosen.
struct WordField {
  int (*get)(const MappingSpec& spec);
  void (*set)(MappingSpec& spec, int word);
};

// Members of a parameter whose value is a count, or a call that finds the count, such as
// auto(residual=0.01, most=2048).
struct FoundField {
  int64_t MappingSpec::*count;
  const CountRule* MappingSpec::*rule;
  double MappingSpec::*goal;
};

struct MappingParameter {
  Parameter described;
  // The member of a spec that holds the parameter's value.
  std::variant<int64_t MappingSpec::*, double MappingSpec::*, bool MappingSpec::*, WordField,
               FoundField>
      field;
  // Whether canonical texts contain the parameter even at its default.
  bool always_written = false;

  // Whether the parameter has its default value, the value of a text that omits the parameter.
  bool IsDefault(const MappingSpec& spec) const;
  // Returns the value as text: "500", "gaussian", "true".
  std::string ValueText(const MappingSpec& spec) const;
  // Returns INVALID_ARGUMENT (FIELD_OUT_OF_RANGE), with the parameter as field, if the value is out
  // of range. A value that is not set is accepted unless the parameter is required.
  absl::Status CheckRange(const MappingSpec& spec) const;
};

// Returns all parameters. Thread-safe.
const std::vector<MappingParameter>& MappingParameters();
// Returns null for an unknown name.
const MappingParameter* FindMappingParameter(absl::string_view name);
// Returns the description of a parameter as `family` accepts it, for people and for the API.
// REQUIRES: the family has the parameter.
Parameter DescribeParameter(const Family& family, absl::string_view name);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_PARAMETERS_H_
