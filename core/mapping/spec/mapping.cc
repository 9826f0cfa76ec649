#include "core/mapping/spec/mapping.h"

#include <algorithm>
#include <vector>

#include "core/status/alternatives.h"

namespace phimap {

// Each mapping is defined in a file of its own. Add a new mapping here and to kMappings.
extern const Mapping kF1Mapping;
extern const Mapping kF2Mapping;
extern const Mapping kF3Mapping;
extern const Mapping kRandomProjectionMapping;
extern const Mapping kFourierMapping;
extern const Mapping kKernelPcaMapping;
extern const Mapping kMulticlassMapping;
extern const Mapping kPolynomialMapping;
extern const Mapping kPositiveMapping;

namespace {

constexpr const Mapping* kMappings[] = {
    &kF1Mapping,       &kF2Mapping,        &kF3Mapping,         &kRandomProjectionMapping,
    &kFourierMapping,  &kKernelPcaMapping, &kMulticlassMapping, &kPolynomialMapping,
    &kPositiveMapping,
};

}  // namespace

bool Mapping::Has(absl::string_view parameter) const {
  return std::find(parameters.begin(), parameters.end(), parameter) != parameters.end();
}

absl::Span<const Mapping* const> Mappings() { return kMappings; }

const Mapping* FindMapping(absl::string_view name) {
  for (const Mapping* mapping : kMappings) {
    if (mapping->name == name || (!name.empty() && mapping->long_name == name)) return mapping;
  }
  return nullptr;
}

const Mapping& DefaultMapping() { return kF2Mapping; }

std::string ListOfMappings(absl::FunctionRef<bool(const Mapping&)> holds) {
  std::vector<absl::string_view> names;
  for (const Mapping* mapping : kMappings) {
    if (holds(*mapping)) names.push_back(mapping->name);
  }
  return Alternatives(names);
}

std::string ListOfMappings(absl::string_view parameter) {
  return ListOfMappings(
      [&](const Mapping& mapping) { return parameter.empty() || mapping.Has(parameter); });
}

}  // namespace phimap
