#include "core/landmark/landmark_policy.h"

#include <vector>

#include "core/status/error.h"

namespace phimap {

// Each policy is defined in a file of its own. For a new policy, add a declaration here and an
// entry to kPolicies.
extern const LandmarkPolicy kUniformPolicy;
extern const LandmarkPolicy kRpCholeskyPolicy;
extern const LandmarkPolicy kGivenPolicy;
extern const LandmarkPolicy kD2Policy;
extern const LandmarkPolicy kKMeansPolicy;

namespace {

constexpr const LandmarkPolicy* kPolicies[] = {
    &kUniformPolicy, &kRpCholeskyPolicy, &kGivenPolicy, &kD2Policy, &kKMeansPolicy,
};

}  // namespace

absl::Span<const LandmarkPolicy* const> LandmarkPolicies() { return kPolicies; }

const LandmarkPolicy& DefaultLandmarkPolicy() { return *kPolicies[0]; }

std::string ListOfPolicies(absl::FunctionRef<bool(const LandmarkPolicy&)> holds) {
  std::vector<absl::string_view> names;
  for (const LandmarkPolicy* policy : kPolicies) {
    if (holds(*policy)) names.push_back(policy->name);
  }
  return Alternatives(names);
}

absl::Span<const absl::string_view> LandmarkPolicyNames() {
  static const std::vector<absl::string_view>& names = *[] {
    auto* made = new std::vector<absl::string_view>;
    for (const LandmarkPolicy* policy : kPolicies) made->push_back(policy->name);
    return made;
  }();
  return names;
}

void CentreOn(ConstMatrixView<double> rows, InputStage& input) {
  input.shift.assign(static_cast<size_t>(input.columns), 0.0);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    // Uses running means, because a sum over many large rows could overflow.
    for (int64_t j = 0; j < input.columns; ++j) {
      input.shift[j] += (rows(i, j) - input.shift[j]) / static_cast<double>(i + 1);
    }
  }
}

}  // namespace phimap
