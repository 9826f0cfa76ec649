// Tests requirements that every descriptor of a mapping must meet.
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/leaf_kernel.h"
#include "core/landmark/landmark_policy.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/mapping/spec/mapping_parameters.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(MappingTableTest, EveryMappingIsDescribed) {
  std::set<std::string> names;
  for (const Family* family : Families()) {
    SCOPED_TRACE(family->name);
    EXPECT_TRUE(names.insert(std::string(family->name)).second);
    EXPECT_EQ(FindFamily(family->name), family);
    EXPECT_FALSE(family->line.empty());
    EXPECT_FALSE(family->kernels.empty());
    EXPECT_FALSE(family->theorem_line.empty());
    EXPECT_NE(family->cost, nullptr);
    EXPECT_NE(family->build, nullptr);
    // If no policy states the scope of the theorem, the mapping states it.
    EXPECT_EQ(family->theorem_scope.empty(), family->theorem_is_of_uniform);
    EXPECT_EQ(
        family->default_kernel.empty() || KernelExpression::Parse(family->default_kernel).ok(),
        true);
    for (const absl::string_view name : family->parameters) {
      EXPECT_NE(FindMappingParameter(name), nullptr) << name;
    }
    EXPECT_TRUE(family->Has("serving_type"));
  }
  EXPECT_EQ(FindFamily(""), nullptr);
}

TEST(MappingTableTest, EveryParameterIsDescribedAndUsed) {
  const MappingSpec defaults;
  for (const MappingParameter& parameter : MappingParameters()) {
    SCOPED_TRACE(parameter.described.name);
    EXPECT_FALSE(parameter.described.line.empty());
    EXPECT_TRUE(parameter.IsDefault(defaults));
    bool used = false;
    for (const Family* family : Families()) used |= family->Has(parameter.described.name);
    EXPECT_TRUE(used);
    if (parameter.described.absent == Parameter::Absent::kDefault) {
      EXPECT_EQ(parameter.ValueText(defaults), parameter.described.default_text);
    }
  }
}

// The descriptions of a mapping offer auto(…) if and only if the mapping accepts it, and describe
// the mapping's own meaning of `dimensions`.
TEST(MappingTableTest, ParametersAreDescribedAsTheMappingAcceptsThem) {
  for (const Family* family : Families()) {
    if (!family->Has("landmarks")) continue;
    SCOPED_TRACE(family->name);
    const std::string dimensions = family->Has("dimensions") ? ", dimensions=2" : "";
    const bool accepted =
        MappingSpec::Parse(
            absl::StrCat(family->name, "(landmarks=auto(residual=0.1)", dimensions, ")"))
            .ok();
    const Parameter described = DescribeParameter(*family, "landmarks");
    EXPECT_EQ(absl::StrContains(described.Expected(), "auto("), accepted);
    EXPECT_EQ(absl::StrContains(described.line, "auto("), accepted);
  }
  EXPECT_EQ(DescribeParameter(*FindFamily("fourier"), "dimensions").line, "number of features");
  EXPECT_EQ(DescribeParameter(*FindFamily("multiclass"), "dimensions").line,
            "number of features of each class");
}

TEST(LandmarkPoliciesTest, EveryPolicyIsDescribed) {
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    SCOPED_TRACE(policy->name);
    EXPECT_FALSE(policy->line.empty());
    EXPECT_NE(policy->choose, nullptr);
    EXPECT_EQ(policy->carries_margin_theorems, policy->theorem.empty());
    EXPECT_EQ(policy->work == nullptr, policy->bytes == nullptr);
    const MappingSpec spec =
        MappingSpec::Parse(absl::StrCat("f2(landmarks=5, policy=", policy->name, ")")).value();
    EXPECT_EQ(spec.policy, policy);
  }
}

// A spec is refused if and only if the descriptor of its policy excludes strings or remote kernels.
TEST(LandmarkPoliciesTest, RefusalsAreThoseOfTheDescriptor) {
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    SCOPED_TRACE(policy->name);
    BuildSpec spec{
        .mapping = *MappingSpec::Parse(absl::StrCat("f2(landmarks=5, policy=", policy->name, ")")),
        .kernel = *KernelExpression::Parse("spectrum(n=3)")};
    EXPECT_EQ(spec.Validate().ok(), policy->no_strings.empty());
    EXPECT_TRUE(absl::StrContains(spec.Validate().message(), policy->no_strings));
    spec.remote = *RemoteKernel::Parse("precomputed()");
    EXPECT_EQ(spec.Validate().ok(), policy->no_remote.empty());
    EXPECT_TRUE(absl::StrContains(spec.Validate().message(), policy->no_remote));
  }
}

}  // namespace
}  // namespace phimap::testing
