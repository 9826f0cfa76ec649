// Descriptions of all mapping parameters. Each mapping lists the names of its own.
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

// A word, given by its index in Parameter::words; −1 if none was chosen.
struct WordField {
  int (*get)(const MappingSpec& spec);
  void (*set)(MappingSpec& spec, int word);
};

// A count, or auto(residual=…, most=…), which makes the build find the count. `residual` is 0 if
// the count is given.
struct GrownField {
  int64_t MappingSpec::*count;
  double MappingSpec::*residual;
};

// A parameter's value as a typed field holds it. A string is one of Parameter::words.
using ParameterValue = std::variant<int64_t, double, bool, std::string>;

struct MappingParameter {
  Parameter described;
  // Member of MappingSpec that holds the parameter's value.
  std::variant<int64_t MappingSpec::*, double MappingSpec::*, bool MappingSpec::*, WordField,
               GrownField>
      field;
  // Canonical texts include the parameter even at its default.
  bool always_written = false;

  // Whether the parameter has the value that it gets if the text omits it.
  bool IsDefault(const MappingSpec& spec) const;
  // Returns the value as text: "500", "gaussian", "true".
  std::string ValueText(const MappingSpec& spec) const;
  // Stores `value` in `spec`. REQUIRES: `value` has the parameter's type; a string is one of its
  // words; for GrownField, `value` is a count.
  void Set(const ParameterValue& value, MappingSpec& spec) const;
  // Returns INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) with the parameter as field if the value is out
  // of range. An omitted value is accepted unless the parameter is required.
  absl::Status CheckRange(const MappingSpec& spec) const;
};

// Returns all parameters of all mappings. Thread-safe.
const std::vector<MappingParameter>& MappingParameters();
// Returns null if no parameter has this name.
const MappingParameter* FindMappingParameter(absl::string_view name);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_PARAMETERS_H_
