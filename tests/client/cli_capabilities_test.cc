#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/views/views.h"
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace phimap::cli {
namespace {

// Capabilities of a server. The family "sketch" has one required parameter and one with a default.
v1::ListCapabilitiesResponse Offered() {
  return testing::Parsed<v1::ListCapabilitiesResponse>(R"(
      families {
        name: "sketch" line: "Random sums of the columns." kernels: "linear kernels"
        theorem: "unbiased" leaf_kernels: ["inner", "outer"]
        parameters { name: "dimensions" required: true expected: "an integer from 1 to 9"
                     line: "features of a row" }
        parameters { name: "scale" default_value: "0.5" expected: "a number > 0" unit: "1/length" }
      }
      families { name: "span" leaf_kernels: ["inner", "outer", "third"] }
      kernels { name: "inner" }
      learners { name: "mean" is_default: true learns_from_kernel: true })");
}

TEST(CapabilitiesViewTest, AllKindsAreNamesWithALineEach) {
  EXPECT_EQ(
      RenderCapabilities(Offered(), 80),
      "families\n  sketch  Random sums of the columns.\n  span    \nkernels\n  inner  \npolicies\n"
      "learners\n  mean  \n");
}

TEST(CapabilitiesViewTest, OneKindHasItsParameters) {
  EXPECT_EQ(RenderKind(Offered().families(), 80),
            "sketch  Random sums of the columns.\n"
            "    kernels: linear kernels\n"
            "    leaf kernels: inner, outer\n"
            "    guarantee: unbiased\n    parameter   default   value\n"
            "    dimensions  required  an integer from 1 to 9: features of a row\n"
            "    scale       0.5       a number > 0, in 1/length\n"
            "span  \n");
  const std::string learners = RenderKind(Offered().learners(), 80);
  EXPECT_THAT(learners, HasSubstr("learns from: raw rows"));
  EXPECT_THAT(learners, HasSubstr("default: used if none is named"));
}

}  // namespace
}  // namespace phimap::cli
