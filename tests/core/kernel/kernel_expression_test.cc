#include "core/kernel/kernel_expression.h"

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"

namespace phimap::testing {
namespace {

TEST(KernelExpressionTest, DefaultIsTheLinearKernel) {
  EXPECT_EQ(KernelExpression().ToText(), "linear()");
}

TEST(KernelExpressionTest, ResolvingReplacesEachSourceByItsNumber) {
  const KernelExpression kernel = MustParseKernel(
      "rbf() + rbf(gamma=median)*poly(degree=2, gamma=scale) + rbf(gamma=3) + linear()");
  EXPECT_TRUE(kernel.NeedsScale());
  EXPECT_TRUE(kernel.NeedsMedian());
  const KernelExpression resolved = kernel.Resolved(0.25, 0.5);
  EXPECT_EQ(resolved.ToText(),
            "rbf(gamma=0.25) + rbf(gamma=0.5)*poly(degree=2, gamma=0.25, coef0=0) + "
            "rbf(gamma=3) + linear()");
  EXPECT_FALSE(resolved.NeedsScale());
  EXPECT_FALSE(resolved.NeedsMedian());
  // The original expression is unchanged, although the two share nodes.
  EXPECT_TRUE(kernel.NeedsScale());
}

TEST(KernelExpressionTest, NeedsOnlyWhatItNames) {
  EXPECT_FALSE(MustParseKernel("linear() + rbf(gamma=1)").NeedsScale());
  EXPECT_FALSE(MustParseKernel("rbf()").NeedsMedian());
  EXPECT_TRUE(MustParseKernel("2*(linear() + 3*rbf(gamma=median))").NeedsMedian());
  // Numbers that the kernel does not need may have any value.
  EXPECT_EQ(MustParseKernel("linear()").Resolved(0, 0).ToText(), "linear()");
}

TEST(KernelExpressionTest, TranslationInvarianceIsThatOfEveryLeaf) {
  EXPECT_TRUE(MustParseKernel("rbf()").IsTranslationInvariant());
  EXPECT_TRUE(MustParseKernel("2*rbf(gamma=1) + rbf()*rbf()").IsTranslationInvariant());
  EXPECT_FALSE(MustParseKernel("linear()").IsTranslationInvariant());
  EXPECT_FALSE(MustParseKernel("rbf() + 0.1*poly(degree=1)").IsTranslationInvariant());
  EXPECT_FALSE(MustParseKernel("rbf()*linear()").IsTranslationInvariant());
  EXPECT_TRUE(MustParseKernel("laplacian() + exp(delta()*rbf())").IsTranslationInvariant());
  EXPECT_TRUE(MustParseKernel("normalize(2*laplacian())").IsTranslationInvariant());
  for (const char* text : {"cosine()", "sigmoid()", "bilinear(diagonal=[1])",
                           "weight(constant=2)*rbf()", "normalize(linear())"}) {
    EXPECT_FALSE(MustParseKernel(text).IsTranslationInvariant()) << text;
  }
}

TEST(KernelExpressionTest, ScaledLinearKernelsAreRecognised) {
  double factor = 0;
  EXPECT_TRUE(MustParseKernel("linear()").IsScaledLinear(&factor));
  EXPECT_EQ(factor, 1);
  EXPECT_TRUE(MustParseKernel("2*(3*linear())").IsScaledLinear(&factor));
  EXPECT_EQ(factor, 6);
  for (const char* text : {"rbf()", "linear()+linear()", "linear()*linear()", "poly(degree=1)"}) {
    EXPECT_FALSE(MustParseKernel(text).IsScaledLinear(&factor)) << text;
  }
}

TEST(KernelExpressionTest, DefinitenessByConstructionNamesTheColumnThatBreaksIt) {
  for (const char* text :
       {"linear()", "rbf()", "poly(degree=3, gamma=0, coef0=0)", "0*linear()",
        "2*(rbf() + poly(degree=2, coef0=1))*linear()", "poly(degree=2, gamma=scale)",
        "laplacian()", "delta()", "cosine()", "weight(constant=-2)*exp(linear())",
        "normalize(rbf())", "bilinear(diagonal=[0, 1])", "bilinear(matrix=[2, 1; 1, 2])",
        "bilinear(matrix=[1, 1; 1, 1])", "bilinear(matrix=[0, 0; 0, 1])"}) {
    EXPECT_TRUE(MustParseKernel(text).IsProvenPositiveSemidefinite()) << text;
    EXPECT_TRUE(MustParseKernel(text).CheckPositiveSemidefinite().ok()) << text;
  }
  struct Case {
    const char* text;
    const char* column;
    const char* says;
  };
  const Case kCases[] = {
      {"poly(degree=2, coef0=-1)", "1", "coef0=-1"},
      {"rbf() + poly(degree=1, gamma=-2)", "9", "gamma=-2"},
      {"linear() + -2*linear()", "12", "factor -2"},
      {"rbf()*(linear() + poly(degree=2, coef0=-1e-9))", "19", "coef0=-1e-09"},
      {"-1*poly(degree=2, coef0=-1)", "1", "factor -1"},
      {"exp(-1*linear())", "5", "factor -1"},
      {"rbf() + bilinear(diagonal=[1, -1])", "9", "the diagonal of row 2 is -1"},
      {"bilinear(matrix=[1, 2; 2, 1])", "1", "the diagonal of row 2 is -3"},
      {"bilinear(matrix=[0, 1; 1, 0])", "1", "minor of rows"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = MustParseKernel(c.text).CheckPositiveSemidefinite();
    EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "KERNEL_NOT_POSITIVE_SEMIDEFINITE"))
        << c.text;
    EXPECT_EQ(DetailOf(status)->metadata.at("column"), c.column) << status;
    EXPECT_NE(status.message().find(c.says), std::string::npos) << status;
    EXPECT_FALSE(MustParseKernel(c.text).IsProvenPositiveSemidefinite()) << c.text;
  }
  // The definiteness of a sigmoid is unknown.
  EXPECT_TRUE(MustParseKernel("rbf() + sigmoid()").CheckPositiveSemidefinite().ok());
  EXPECT_FALSE(MustParseKernel("rbf() + sigmoid()").IsProvenPositiveSemidefinite());
}

TEST(KernelExpressionTest, BilinearFormsWantRowsOfTheirLength) {
  const KernelExpression kernel = MustParseKernel("rbf() + 2*bilinear(diagonal=[1, 2, 3])");
  EXPECT_TRUE(kernel.CheckColumns(3).ok());
  const absl::Status status = kernel.CheckColumns(4);
  EXPECT_EQ(ReasonOf(status), "COLUMNS_MISMATCH");
  EXPECT_EQ(FieldOf(status), "kernel");
  EXPECT_NE(status.message().find("column 11"), std::string::npos) << status;
  EXPECT_NE(status.message().find("rows of 3 numbers, but these rows have 4"), std::string::npos)
      << status;
  EXPECT_TRUE(MustParseKernel("rbf()").CheckColumns(4).ok());
}

}  // namespace
}  // namespace phimap::testing
