#include "proto/calls/capabilities.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

using ::testing::ElementsAre;

using Capabilities = google::protobuf::RepeatedPtrField<v1::Capability>;

const v1::Capability* Find(const Capabilities& all, const std::string& name) {
  for (const v1::Capability& one : all) {
    if (one.name() == name) return &one;
  }
  return nullptr;
}

v1::ListCapabilitiesResponse Listed() {
  v1::ListCapabilitiesResponse response;
  CapabilitiesToProto(&response);
  return response;
}

TEST(CapabilitiesTest, AMappingHasItsParametersAndKernels) {
  const v1::ListCapabilitiesResponse listed = Listed();
  const v1::Capability* fourier = Find(listed.families(), "fourier");
  ASSERT_NE(fourier, nullptr);
  ASSERT_EQ(fourier->parameters_size(), 6);
  const v1::ParameterInfo& dimensions = fourier->parameters(0);
  EXPECT_EQ(dimensions.name(), "dimensions");
  EXPECT_EQ(dimensions.type(), v1::ParameterInfo::TYPE_INTEGER);
  EXPECT_TRUE(dimensions.required());
  EXPECT_EQ(dimensions.least(), 1);
  EXPECT_EQ(dimensions.largest(), 65536);
  EXPECT_EQ(dimensions.expected(), "an integer from 1 to 65536");
  const v1::ParameterInfo& form = fourier->parameters(1);
  EXPECT_EQ(form.default_value(), "sincos");
  EXPECT_THAT(form.words(), ElementsAre("phase", "sincos"));
  EXPECT_THAT(fourier->leaf_kernels(), ::testing::IsSupersetOf({"rbf", "laplacian"}));
  EXPECT_THAT(fourier->leaf_kernels(), ::testing::Not(::testing::Contains("linear")));
  EXPECT_THAT(Find(listed.families(), "f1")->leaf_kernels(),
              ::testing::IsSupersetOf({"rbf", "linear", "sigmoid"}));
  EXPECT_EQ(Find(listed.families(), "random_projection")->default_kernel(), "linear()");
}

TEST(CapabilitiesTest, KernelsPoliciesAndLearnersAreListed) {
  const v1::ListCapabilitiesResponse listed = Listed();
  ASSERT_NE(Find(listed.kernels(), "rbf"), nullptr);
  EXPECT_FALSE(Find(listed.kernels(), "rbf")->formula().empty());
  const v1::Capability* rpcholesky = Find(listed.policies(), "rpcholesky");
  ASSERT_NE(rpcholesky, nullptr);
  EXPECT_FALSE(rpcholesky->takes_remote_kernels());
  EXPECT_TRUE(rpcholesky->takes_strings());
  const v1::Capability* svm = Find(listed.learners(), "linear_svm");
  ASSERT_NE(svm, nullptr);
  EXPECT_EQ(svm->parameters(0).name(), "C");
  EXPECT_EQ(svm->parameters(0).default_value(), "1");
  EXPECT_TRUE(svm->parameters(0).above_least());
  EXPECT_FALSE(svm->learns_from_kernel());
  EXPECT_TRUE(Find(listed.learners(), "kernel_svm")->learns_from_kernel());
  EXPECT_TRUE(svm->is_default());
  EXPECT_EQ(std::count_if(listed.learners().begin(), listed.learners().end(),
                          [](const v1::Capability& one) { return one.is_default(); }),
            1);
}

TEST(CapabilitiesTest, EveryLineIsThere) {
  const v1::ListCapabilitiesResponse listed = Listed();
  for (const Capabilities* all :
       {&listed.families(), &listed.kernels(), &listed.policies(), &listed.learners()}) {
    EXPECT_GT(all->size(), 2);
    for (const v1::Capability& one : *all) {
      EXPECT_FALSE(one.line().empty()) << one.name();
      for (const v1::ParameterInfo& parameter : one.parameters()) {
        EXPECT_FALSE(parameter.line().empty()) << one.name() << " " << parameter.name();
        EXPECT_FALSE(parameter.expected().empty());
        EXPECT_NE(parameter.type(), v1::ParameterInfo::TYPE_UNSPECIFIED);
      }
    }
  }
}

}  // namespace
}  // namespace phimap
