#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/views/views.h"

namespace phimap::cli {
namespace {

// Capabilities of a server. The mapping "sketch" has one required parameter and one with a default.
v1::ListCapabilitiesResponse Offered() {
  v1::ListCapabilitiesResponse all;
  v1::Capability& mapping = *all.add_mappings();
  mapping.set_name("sketch");
  mapping.set_line("Random sums of the columns.");
  mapping.set_kernels("linear kernels");
  mapping.set_theorem("unbiased");
  for (const char* kernel : {"inner", "outer"}) mapping.add_leaf_kernels(kernel);
  v1::ParameterInfo& dimensions = *mapping.add_parameters();
  dimensions.set_name("dimensions");
  dimensions.set_required(true);
  dimensions.set_expected("an integer from 1 to 9");
  dimensions.set_line("features of a row");
  v1::ParameterInfo& scale = *mapping.add_parameters();
  scale.set_name("scale");
  scale.set_default_value("0.5");
  scale.set_expected("a number > 0");
  scale.set_unit("1/length");
  v1::Capability& span = *all.add_mappings();
  span.set_name("span");
  for (const char* kernel : {"inner", "outer", "third"}) span.add_leaf_kernels(kernel);
  all.add_kernels()->set_name("inner");
  v1::Capability& learner = *all.add_learners();
  learner.set_name("mean");
  learner.set_is_default(true);
  learner.set_learns_from_kernel(true);
  return all;
}

TEST(CapabilitiesViewTest, AllKindsAreNamesWithALineEach) {
  EXPECT_EQ(
      RenderCapabilities(Offered(), 80),
      "mappings\n  sketch  Random sums of the columns.\n  span    \nkernels\n  inner  \npolicies\n"
      "learners\n  mean  \n");
}

TEST(CapabilitiesViewTest, OneKindHasItsParameters) {
  EXPECT_EQ(RenderKind(Offered().mappings(), 80),
            "sketch  Random sums of the columns.\n"
            "    kernels: linear kernels\n"
            "    leaf kernels: inner, outer\n"
            "    guarantee: unbiased\n    parameter   default   value\n"
            "    dimensions  required  an integer from 1 to 9: features of a row\n"
            "    scale       0.5       a number > 0, in 1/length\n"
            "span  \n");
  const std::string learners = RenderKind(Offered().learners(), 80);
  EXPECT_THAT(learners, ::testing::HasSubstr("learns from: raw rows"));
  EXPECT_THAT(learners, ::testing::HasSubstr("default: used if none is named"));
}

}  // namespace
}  // namespace phimap::cli
