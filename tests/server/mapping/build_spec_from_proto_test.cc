#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/build/build_job.h"
#include "server/mapping/request_fields.h"
#include "tests/support/matchers.h"

namespace phimap {
namespace {

v1::BuildSpec Fields(const std::string& spec, const std::string& kernel) {
  v1::BuildSpec fields;
  fields.set_spec(spec);
  fields.set_kernel(kernel);
  return fields;
}

TEST(BuildSpecFromProtoTest, ASpecHasTheFingerprintThat01GaveItInEitherForm) {
  v1::BuildSpec fields = Fields("f2(landmarks=5)", "rbf(gamma=0.5)");
  fields.set_seed(7);
  v1::BuildSpec old = Fields("", "rbf(gamma=0.5)");
  old.set_seed(7);
  // spec_0_1 { text: "f2(landmarks=5)" }
  ASSERT_TRUE(
      old.MergeFromString("\x1a\x11\n\x0f"
                          "f2(landmarks=5)"));
  for (const v1::BuildSpec& form : {fields, old}) {
    const BuildSpec spec = BuildSpecFromProto(form).value();
    // SHA-256 of "f2(landmarks=5, policy=uniform) of rbf(gamma=0.5), seed=7".
    EXPECT_EQ(BuildOrder(spec).Digest(),
              "f03d82430b07cbdecbbddf9ab834c6664da9e206f4e2ac8256efe7c3e7857f0c");
  }
}

TEST(BuildSpecFromProtoTest, AnErrorNamesTheParameterAndOnlySyntaxNamesTheText) {
  const struct {
    const char* spec;
    const char* kernel;
    const char* field;
    const char* message;
  } cases[] = {
      {"f2(landmarks=0)", "linear()", "spec.landmarks", "column 14"},
      {"f2(landmarks=5, goal=1)", "linear()", "spec.goal", "column 17"},
      {"f2(landmarks=5, landmarks=6)", "linear()", "spec.landmarks", "given twice"},
      {"f2(landmarks=auto(residual=2))", "linear()", "spec.landmarks", "column 28"},
      {"f2(landmarks=5, pool_rows=4)", "linear()", "spec.pool_rows", "at least `landmarks`"},
      {"f3(landmarks=5)", "linear()", "spec.dimensions", "needs the parameter"},
      {"f2(landmarks=5", "linear()", "spec.spec", "column 15"},
      {"f9(landmarks=5)", "linear()", "spec.spec", "unknown"},
      {"", "linear()", "spec.spec", "column 1"},
      {"f2(landmarks=5)", "2 * rbf(gamma=-1)", "spec.gamma", "column 15"},
      {"f2(landmarks=5)", "matern(nu=2)", "spec.nu", "column 11"},
      {"f2(landmarks=5)", "rbf(scales=[1, 2], columns=0:3)", "spec.scales", "column 12"},
      {"f2(landmarks=5)", "service(endpoint=3)", "spec.endpoint", "column 18"},
      {"f2(landmarks=5)", "service()", "spec.endpoint", "needs endpoint"},
      {"f2(landmarks=5)", "rbf(gamma=1", "spec.kernel", "column 12"},
      {"f2(landmarks=5)", "", "spec.kernel", "expected a kernel"},
      {"f2(landmarks=5, policy=rpcholesky)", "precomputed()", "spec.policy", "remote kernel"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.spec) + " of " + c.kernel);
    const absl::Status status = BuildSpecFromProto(Fields(c.spec, c.kernel)).status();
    EXPECT_THAT(status, testing::IsError(StatusCode::kInvalidArgument, _, c.field));
    const ErrorDetail detail = *DetailOf(status);
    const auto column = detail.metadata.find("column");
    const std::string place =
        column == detail.metadata.end() ? "" : absl::StrCat("column ", column->second, ": ");
    EXPECT_THAT(absl::StrCat(place, status.message()), ::testing::HasSubstr(c.message));
  }
}

TEST(BuildSpecFromProtoTest, AFamilyWithADefaultKernelNeedsNone) {
  const BuildSpec spec = BuildSpecFromProto(Fields("random_projection(dimensions=4)", "")).value();
  EXPECT_EQ(spec.KernelText(), "linear()");
}

}  // namespace
}  // namespace phimap
