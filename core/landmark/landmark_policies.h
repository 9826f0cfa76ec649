// All landmark policies.
#ifndef PHIMAP_CORE_LANDMARK_LANDMARK_POLICIES_H_
#define PHIMAP_CORE_LANDMARK_LANDMARK_POLICIES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/landmark/landmark_policy.h"

namespace phimap {

// The default first.
absl::Span<const LandmarkPolicy* const> LandmarkPolicies();
const LandmarkPolicy& DefaultLandmarkPolicy();
// "uniform, rpcholesky or d2": the policies that `holds` is true for, of which there must be one.
std::string ListOfPolicies(absl::FunctionRef<bool(const LandmarkPolicy&)> holds);
// Their names, in that order.
absl::Span<const absl::string_view> LandmarkPolicyNames();

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_POLICIES_H_
