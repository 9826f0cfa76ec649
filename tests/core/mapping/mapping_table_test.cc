// Tests requirements that every descriptor of a mapping must meet.
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/leaf_kernel.h"
#include "core/landmark/landmark_policy.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/mapping.h"
#include "core/mapping/spec/mapping_parameters.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

TEST(MappingTableTest, EveryMappingIsDescribed) {
  std::set<std::string> names;
  for (const Mapping* mapping : Mappings()) {
    SCOPED_TRACE(mapping->name);
    EXPECT_TRUE(names.insert(std::string(mapping->name)).second);
    EXPECT_EQ(FindMapping(mapping->name), mapping);
    EXPECT_FALSE(mapping->line.empty());
    EXPECT_FALSE(mapping->kernels.empty());
    EXPECT_FALSE(mapping->theorem_line.empty());
    EXPECT_NE(mapping->cost, nullptr);
    EXPECT_NE(mapping->build, nullptr);
    // If no policy states the scope of the theorem, the mapping states it.
    EXPECT_EQ(mapping->theorem_scope.empty(), mapping->theorem_is_of_uniform);
    EXPECT_EQ(
        mapping->default_kernel.empty() || KernelExpression::Parse(mapping->default_kernel).ok(),
        true);
    for (const absl::string_view name : mapping->parameters) {
      EXPECT_NE(FindMappingParameter(name), nullptr) << name;
    }
    EXPECT_TRUE(mapping->Has("serving_type"));
  }
  EXPECT_EQ(FindMapping(""), nullptr);
  EXPECT_EQ(FindMapping("kernel_pca"), FindMapping("kpca"));
}

TEST(MappingTableTest, EveryParameterIsDescribedAndUsed) {
  const MappingSpec defaults;
  for (const MappingParameter& parameter : MappingParameters()) {
    SCOPED_TRACE(parameter.described.name);
    EXPECT_FALSE(parameter.described.line.empty());
    EXPECT_TRUE(parameter.IsDefault(defaults));
    bool used = false;
    for (const Mapping* mapping : Mappings()) used |= mapping->Has(parameter.described.name);
    EXPECT_TRUE(used);
    if (parameter.described.absent == Parameter::Absent::kDefault) {
      EXPECT_EQ(parameter.ValueText(defaults), parameter.described.default_text);
    }
  }
}

// The descriptions of a mapping offer auto(…) if and only if the mapping accepts it, and describe
// the mapping's own meaning of `dimensions`.
TEST(MappingTableTest, ParametersAreDescribedAsTheMappingAcceptsThem) {
  for (const Mapping* mapping : Mappings()) {
    if (!mapping->Has("landmarks")) continue;
    SCOPED_TRACE(mapping->name);
    const std::string dimensions = mapping->Has("dimensions") ? ", dimensions=2" : "";
    const bool accepted =
        MappingSpec::Parse(
            absl::StrCat(mapping->name, "(landmarks=auto(residual=0.1)", dimensions, ")"))
            .ok();
    const Parameter described = DescribeParameter(*mapping, "landmarks");
    EXPECT_EQ(absl::StrContains(described.Expected(), "auto("), accepted);
    EXPECT_EQ(absl::StrContains(described.line, "auto("), accepted);
  }
  EXPECT_EQ(DescribeParameter(*FindMapping("fourier"), "dimensions").line, "number of features");
  EXPECT_EQ(DescribeParameter(*FindMapping("multiclass"), "dimensions").line,
            "number of features of each class");
}

TEST(MappingTableTest, ValuesThatTypedFieldsBringAreThoseOfTheText) {
  MappingSpec spec{.kind = FindMapping("kpca")};
  FindMappingParameter("landmarks")->Set(int64_t{9}, spec);
  FindMappingParameter("dimensions")->Set(int64_t{4}, spec);
  FindMappingParameter("centred")->Set(false, spec);
  FindMappingParameter("rounding")->Set(7.5, spec);
  FindMappingParameter("policy")->Set(std::string("given"), spec);
  FindMappingParameter("serving_type")->Set(std::string("float64"), spec);
  EXPECT_EQ(spec.ToText(),
            "kpca(landmarks=9, dimensions=4, centred=false, rounding=7.5, policy=given, "
            "serving_type=float64)");
}

TEST(LandmarkPoliciesTest, EveryPolicyIsDescribed) {
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    SCOPED_TRACE(policy->name);
    EXPECT_FALSE(policy->line.empty());
    EXPECT_NE(policy->choose, nullptr);
    EXPECT_EQ(policy->carries_margin_theorems, policy->theorem.empty());
    EXPECT_EQ(policy->work == nullptr, policy->bytes == nullptr);
    const absl::StatusOr<MappingSpec> spec =
        MappingSpec::Parse(absl::StrCat("f2(landmarks=5, policy=", policy->name, ")"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->policy, policy);
  }
}

// A spec is refused if and only if the descriptor of its policy excludes strings or remote kernels.
TEST(LandmarkPoliciesTest, RefusalsAreThoseOfTheDescriptor) {
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    SCOPED_TRACE(policy->name);
    BuildSpec spec;
    spec.mapping = *MappingSpec::Parse(absl::StrCat("f2(landmarks=5, policy=", policy->name, ")"));
    spec.kernel = *KernelExpression::Parse("spectrum(n=3)");
    EXPECT_EQ(spec.Validate().ok(), policy->no_strings.empty());
    EXPECT_TRUE(absl::StrContains(spec.Validate().message(), policy->no_strings));
    spec.remote = *RemoteKernel::Parse("precomputed()");
    EXPECT_EQ(spec.Validate().ok(), policy->no_remote.empty());
    EXPECT_TRUE(absl::StrContains(spec.Validate().message(), policy->no_remote));
  }
}

}  // namespace
}  // namespace phimap
