// Tests remote kernels: their texts, the specs that cannot use them, and their memory.
#include "core/kernel/remote_kernel.h"

#include <string>
#include <utility>

#include "core/landmark/split.h"
#include "core/mapping/build/build_cost.h"
#include "core/mapping/sample/gram_sample.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/remote_rows.h"
#include "tests/support/matchers.h"
#include "tests/support/sparse_rows.h"

namespace phimap::testing {
namespace {

TEST(RemoteKernelTest, TextHasOneForm) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"precomputed()", "precomputed()"},
      {" service( endpoint = edit )", "service(endpoint=edit, kernel=edit)"},
      {"service(kernel=words, endpoint=edit)", "service(endpoint=edit, kernel=words)"},
  };
  for (const auto& [text, canonical] : kTexts) {
    const auto parsed = RemoteKernel::Parse(text).value();
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->ToText(), canonical);
  }
  for (const char* text : {"rbf(gamma=1)", "", "0.5*precomputed()", "(service(endpoint=a))"}) {
    const auto parsed = RemoteKernel::Parse(text).value();
    EXPECT_FALSE(parsed.has_value()) << text;
  }
  for (const char* text : {"precomputed(", "precomputed(n=1)", "precomputed() + rbf()", "service()",
                           "service(endpoint=1)", "service(endpoint=a, kernel=2)",
                           "service(endpoint=a, host=b)", "service(endpoint=a)*2"}) {
    EXPECT_EQ(ReasonOf(RemoteKernel::Parse(text).status()), "EXPRESSION_INVALID") << text;
  }
  for (const char* text : {"rbf() + precomputed()", "2*service(endpoint=a)"}) {
    const absl::Status status = KernelExpression::Parse(text).status();
    EXPECT_NE(status.message().find("cannot be part of an expression"), std::string::npos)
        << status;
  }
}

TEST(RemoteKernelTest, SpecsThatAskForMoreThanTheValuesAreRefused) {
  const std::pair<const char*, const char*> kSpecs[] = {
      {"fourier(dimensions=8)", "kernel"},
      {"random_projection(dimensions=8)", "kernel"},
      {"f2(landmarks=8, policy=rpcholesky)", "policy"},
      {"f2(landmarks=8, input_dimensions=2)", "input_dimensions"},
      {"kpca(landmarks=8, dimensions=2, sparsify=2)", "sparsify"},
      {"kpca(landmarks=8, dimensions=2, quantise=true)", "quantise"},
  };
  for (const char* kernel : {"precomputed()", kService}) {
    for (const auto& [mapping, field] : kSpecs) {
      const absl::Status status = SpecOf(mapping, kernel).Validate();
      EXPECT_EQ(ReasonOf(status), "KERNEL_NOT_APPLICABLE") << mapping;
      EXPECT_EQ(FieldOf(status), field);
    }
    EXPECT_EQ(DetailOf(SpecOf("f2(landmarks=8)", kernel, /*standardize=*/true).Validate())->field,
              "standardize");
    EXPECT_TRUE(SpecOf("kpca(landmarks=8, dimensions=2, rounding=5)", kernel).Validate().ok());
  }
}

// The memory of a Gram matrix does not grow with the length of the stream.
TEST(RemoteKernelTest, MemoryOfAGramMatrixIsBounded) {
  const BuildSpec spec = SpecOf("f2(landmarks=100)", "precomputed()");
  const int64_t kept = 100 + kMaxRemoteHeldOutRows;
  EXPECT_LE(StreamSample(spec, kMaxColumns).memory_bound_bytes(), 8 * kept * kept);
  EXPECT_LE(StreamSample(spec, kMaxColumns).memory_bound_bytes(),
            CostOfBuild(spec, kMaxColumns, kMaxColumns).sample_bytes);
}

// The reservation covers the sample and also the copies of examples that are sent to the service,
// which are as many bytes again.
TEST(RemoteKernelTest, MemoryOfStringsIsReservedOnceTheyAreKnownToBeStrings) {
  const BuildSpec spec = SpecOf("f2(landmarks=24)", kService);
  for (const ExampleKind kind : {ExampleKind::kText, ExampleKind::kBytes}) {
    EXPECT_GE(ReservedBytes(spec, kind, 1, 1),
              StreamSample(spec, 1, kind).memory_bound_bytes() + kMaxSampledStringBytes);
  }
  for (const ExampleKind kind : {ExampleKind::kDense, ExampleKind::kSparse}) {
    EXPECT_EQ(ReservedBytes(spec, kind, 5, 1), ReservedBytes(spec, 5));
  }
}

}  // namespace
}  // namespace phimap::testing
