#include "core/mapping/spec/family.h"

#include <algorithm>
#include <vector>

#include "core/status/error.h"

namespace phimap {

// Each family is defined in a file of its own. Add a new family here and to kFamilies.
extern const Family kF1Family;
extern const Family kF2Family;
extern const Family kF3Family;
extern const Family kRandomProjectionFamily;
extern const Family kFourierFamily;
extern const Family kKernelPcaFamily;
extern const Family kMulticlassFamily;
extern const Family kPolynomialFamily;
extern const Family kPositiveFamily;

namespace {

constexpr const Family* kFamilies[] = {
    &kF1Family,       &kF2Family,        &kF3Family,         &kRandomProjectionFamily,
    &kFourierFamily,  &kKernelPcaFamily, &kMulticlassFamily, &kPolynomialFamily,
    &kPositiveFamily,
};

}  // namespace

bool Family::Has(absl::string_view parameter) const {
  return std::find(parameters.begin(), parameters.end(), parameter) != parameters.end();
}

absl::Span<const Family* const> Families() { return kFamilies; }

const Family* FindFamily(absl::string_view name) {
  for (const Family* family : kFamilies) {
    if (family->name == name) return family;
    if (!name.empty() && family->earlier_name == name) return family;
  }
  return nullptr;
}

const Family& DefaultFamily() { return kF2Family; }

std::string ListOfFamilies(absl::FunctionRef<bool(const Family&)> holds) {
  std::vector<absl::string_view> names;
  for (const Family* family : kFamilies) {
    if (holds(*family)) names.push_back(family->name);
  }
  return Alternatives(names);
}

std::string ListOfFamilies(absl::string_view parameter) {
  return ListOfFamilies(
      [&](const Family& family) { return parameter.empty() || family.Has(parameter); });
}

}  // namespace phimap
