// All landmark policies.
#ifndef PHIMAP_CORE_LANDMARK_LANDMARK_POLICIES_H_
#define PHIMAP_CORE_LANDMARK_LANDMARK_POLICIES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/landmark/landmark_policy.h"

namespace phimap {

// Returns all policies, the default first.
absl::Span<const LandmarkPolicy* const> LandmarkPolicies();
const LandmarkPolicy& DefaultLandmarkPolicy();
// Returns the names of the policies for which `holds` is true, such as "uniform, rpcholesky or d2".
// There must be at least one.
std::string ListOfPolicies(absl::FunctionRef<bool(const LandmarkPolicy&)> holds);
// Returns the names of all policies, in the order of LandmarkPolicies.
absl::Span<const absl::string_view> LandmarkPolicyNames();

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_POLICIES_H_
