#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/leaf_kernel.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

std::string Repeated(const std::string& part, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += part;
  return out;
}

struct Valid {
  std::string text;
  std::string canonical;
};

TEST(KernelParserTest, CanonicalTextNamesEveryParameterAndReadsBackEqual) {
  const Valid kCases[] = {
      {"linear()", "linear()"},
      {"  linear ( )\t", "linear()"},
      {"((linear()))", "linear()"},
      {"poly(degree=2)", "poly(degree=2, gamma=1, coef0=0)"},
      {"poly(coef0=-1.5,gamma=scale,degree=64)", "poly(degree=64, gamma=scale, coef0=-1.5)"},
      {"poly(degree=2e0, gamma=-1)", "poly(degree=2, gamma=-1, coef0=0)"},
      {"rbf()", "rbf(gamma=scale)"},
      {"rbf", "rbf(gamma=scale)"},
      {"rbf + 2*linear", "rbf(gamma=scale) + 2*linear()"},
      {"rbf(gamma=median)", "rbf(gamma=median)"},
      {"rbf(gamma=+.5)", "rbf(gamma=0.5)"},
      {"rbf(gamma=0.1)", "rbf(gamma=0.1)"},
      {"rbf(gamma=1e-300)", "rbf(gamma=1e-300)"},
      {"rbf(gamma=5e-324)", "rbf(gamma=5e-324)"},
      {"rbf(gamma=1.7976931348623157e308)", "rbf(gamma=1.7976931348623157e+308)"},
      {"sigmoid()", "sigmoid(gamma=scale, coef0=0)"},
      {"sigmoid(coef0=-1, gamma=-2)", "sigmoid(gamma=-2, coef0=-1)"},
      {"laplacian()", "laplacian(gamma=scale)"},
      {"laplacian( gamma = median )", "laplacian(gamma=median)"},
      {"delta()*cosine()", "delta()*cosine()"},
      {"rbf(gamma=.1, columns=0:8) * delta(columns=8)",
       "rbf(gamma=0.1, columns=0:8)*delta(columns=8)"},
      {"rbf(columns=7:8, gamma=1)", "rbf(gamma=1, columns=7)"},
      {"rbf(scales=[1, 2])", "rbf(gamma=0.5, scales=[1, 2])"},
      {"laplacian(scales=[1, 2], columns=1:3)", "laplacian(gamma=1, scales=[1, 2], columns=1:3)"},
      {"bilinear(matrix=[2,-1 ; -1,2e0])", "bilinear(matrix=[2, -1; -1, 2])"},
      {"bilinear(matrix=[3])", "bilinear(matrix=[3])"},
      {"bilinear(diagonal=[1,0,3])", "bilinear(diagonal=[1, 0, 3])"},
      {"weight(norm_power=-2)*linear()", "weight(norm_power=-2)*linear()"},
      {"weight(gaussian=0.5)", "weight(gaussian=0.5)"},
      {"weight(constant=-3)", "weight(constant=-3)"},
      {"exp( linear() )", "exp(linear())"},
      {"normalize((rbf()+linear()))", "normalize(rbf(gamma=scale) + linear())"},
      {"2*exp(linear())*normalize(2*linear())", "2*exp(linear())*normalize(2*linear())"},
      {"normalize(exp(linear()*linear()))", "normalize(exp(linear()*linear()))"},
      // * binds tighter than +.
      {"linear()+2*rbf()", "linear() + 2*rbf(gamma=scale)"},
      {"2*(linear()+rbf())", "2*(linear() + rbf(gamma=scale))"},
      {"linear()*rbf()+poly(degree=1)",
       "linear()*rbf(gamma=scale) + poly(degree=1, gamma=1, coef0=0)"},
      {"linear()*(rbf()+linear())", "linear()*(rbf(gamma=scale) + linear())"},
      // Numeric factors are collected into one, wherever they stand.
      {"2*linear()*3", "6*linear()"},
      {"linear()*0.5*rbf()", "0.5*linear()*rbf(gamma=scale)"},
      {"-1*linear()", "-1*linear()"},
      {"0*linear()", "0*linear()"},
      {"2*(3*linear())", "2*(3*linear())"},
      {"(2*linear())*rbf()", "(2*linear())*rbf(gamma=scale)"},
      // Grouping is kept: it fixes the order of the sums.
      {"linear()+(rbf()+linear())", "linear() + (rbf(gamma=scale) + linear())"},
      {"(linear()*rbf())*linear()", "(linear()*rbf(gamma=scale))*linear()"},
      {"linear() + -2*rbf()", "linear() + -2*rbf(gamma=scale)"},
  };
  for (const Valid& c : kCases) {
    const absl::StatusOr<KernelExpression> kernel = KernelExpression::Parse(c.text);
    ASSERT_TRUE(kernel.ok()) << c.text << ": " << kernel.status();
    EXPECT_EQ(kernel->ToText(), c.canonical) << c.text;
    const absl::StatusOr<KernelExpression> again = KernelExpression::Parse(kernel->ToText());
    ASSERT_TRUE(again.ok()) << kernel->ToText() << ": " << again.status();
    EXPECT_EQ(again->ToText(), kernel->ToText());
  }
}

TEST(KernelParserTest, TreeIsTheGrammars) {
  const KernelExpression kernel =
      *KernelExpression::Parse(" linear() + 2*rbf(gamma=3)*poly(degree=4, coef0=5)");
  const KernelNode& sum = kernel.root();
  ASSERT_EQ(sum.kind, KernelNode::Kind::kSum);
  ASSERT_EQ(sum.children.size(), 2u);
  EXPECT_EQ(sum.children[0]->leaf, &LinearKernel());
  EXPECT_EQ(sum.children[0]->column, 2);
  const KernelNode& scaled = *sum.children[1];
  ASSERT_EQ(scaled.kind, KernelNode::Kind::kScaled);
  EXPECT_EQ(scaled.factor, 2);
  const KernelNode& product = *scaled.children[0];
  ASSERT_EQ(product.kind, KernelNode::Kind::kProduct);
  EXPECT_EQ(product.children[0]->leaf->name, "rbf");
  EXPECT_EQ(product.children[0]->values.Number("gamma"), 3);
  EXPECT_EQ(product.children[0]->column, 15);
  EXPECT_EQ(product.children[1]->values.Integer("degree"), 4);
  EXPECT_EQ(product.children[1]->values.Number("coef0"), 5);
}

struct Malformed {
  std::string text;
  int column;
  // A part of the message.
  std::string says;
};

TEST(KernelParserTest, ErrorsNameTheColumnAndWhatWasExpected) {
  const Malformed kCases[] = {
      {"", 1, "expected a kernel, a number or '(', got the end"},
      {"   ", 4, "got the end"},
      {"linear x", 8, "expected"},
      {"linear(", 8, "the name of a parameter"},
      {"linear())", 9, "expected '+', '*' or the end, got ')'"},
      {"linear() linear()", 10, "got 'l'"},
      {"linear()x", 9, "got 'x'"},
      {"linear(a=1)", 8, "linear has no parameter 'a'; it has columns"},
      {"linear(,)", 8, "the name of a parameter, got ','"},
      {"(linear()", 10, "expected ')', got the end"},
      {"((linear())", 12, "expected ')'"},
      {"()", 2, "got ')'"},
      {")", 1, "got ')'"},
      {"+linear()", 1, "got '+'"},
      {"linear()+", 10, "got the end"},
      {"linear()**linear()", 10, "got '*'"},
      {"linear()-linear()", 9, "got '-'"},
      {"2", 2, "a number alone is not a kernel"},
      {"2*3", 4, "a number alone is not a kernel"},
      {"2*", 3, "got the end"},
      {"--2*linear()", 1, "expected a number"},
      {".*linear()", 1, "expected a number"},
      {"2 linear()", 3, "a number alone is not a kernel"},
      {"1e999*linear()", 1, "out of the range"},
      {"1e200*1e200*linear()", 1, "out of range"},
      {"sigmoids()", 1, "unknown kernel 'sigmoids'; expected linear, poly, sigmoid, rbf"},
      {"  Rbf()", 3, "unknown kernel 'Rbf'"},
      {"rbf()+ gauss(gamma=1)", 8, "unknown kernel 'gauss'"},
      {"laplacian(gamma=0)", 17, "gamma of laplacian is > 0, got 0"},
      {"sigmoid(degree=2)", 9, "it has gamma, coef0, columns"},
      {"delta(gamma=1)", 7, "it has columns"},
      {"rbf(gamma=1, columns=3:3)", 22, "columns is a range of columns"},
      {"rbf(columns=0:8)", 1,
       "gamma=scale of rbf is computed over whole rows and cannot be combined with columns"},
      {"2*rbf(gamma=median, scales=[1, 2])", 3, "cannot be combined with scales"},
      {"rbf(gamma=1, scales=[1, 2], columns=0:3)", 21, "expected 3 for columns=0:3, got 2"},
      {"laplacian(scales=[1, 0])", 18, "each number of scales is > 0, got 0 as number 2"},
      {"linear(scales=[1])", 8, "linear has no parameter 'scales'; it has columns"},
      {"cosine(1)", 8, "the name of a parameter"},
      {"exp()", 5, "expected a kernel, a number or '(', got ')'"},
      {"exp", 4, "expected '(', got the end"},
      {"exp(linear()", 13, "expected ')', got the end"},
      {"normalize(2)", 12, "a number alone is not a kernel"},
      {"normalize(linear(), linear())", 19, "expected ')', got ','"},
      {"bilinear()", 1, "needs exactly one of matrix=[...] and diagonal=[...]"},
      {"2*bilinear(matrix=[1], diagonal=[1])", 3,
       "needs exactly one of matrix=[...] and diagonal=[...]"},
      {"bilinear(matrix=1)", 17, "a square list, [a, b; b, c], got 1"},
      {"bilinear(matrix=x)", 17, "a square list, [a, b; b, c], got 'x'"},
      {"bilinear(matrix=[])", 18, "expected a number, got ']'"},
      {"bilinear(matrix=[1, 2])", 17, "got 1 row of 2 numbers"},
      {"bilinear(matrix=[1, 2; 3])", 24, "row 2 has 1 number, expected 2 as in the first"},
      {"bilinear(matrix=[1, 2; 3, 4])", 17,
       "symmetric, but row 2, column 1 is 3 and row 1, column 2 is 2"},
      {"bilinear(matrix=[1, 2; 2, 4)", 28, "expected ',', ';' or ']', got ')'"},
      {"bilinear(diagonal=[1; 2])", 19, "a list, [a, b], got 2 rows of 1 number"},
      {"bilinear(diagonal=[1,,2])", 22, "expected a number, got ','"},
      {"bilinear(diagonal=[1, inf])", 23, "expected a number, got 'i'"},
      {"weight()", 1, "needs exactly one of norm_power, gaussian and constant"},
      {"weight(constant=1, gaussian=2)", 1,
       "needs exactly one of norm_power, gaussian and constant"},
      {"weight(norm_power=0.5)", 19, "integer from -16 to 16, got 0.5"},
      {"weight(norm_power=17)", 19, "got 17"},
      {"weight(constant=[1])", 17, "constant is a number, got a list"},
      {"rbf(gamma=[1])", 11, "gamma is a number > 0, scale or median; got a list"},
      {"poly(degree=[2])", 13, "integer from 1 to 64, got a list"},
      {"rbf(gamma)", 10, "expected '=', got ')'"},
      {"rbf(gamma=)", 11, "expected a number"},
      {"rbf(gamma=1,)", 13, "the name of a parameter"},
      {"rbf(gamma=1 gamma=2)", 13, "expected ',' or ')'"},
      {"rbf(gamma=1,gamma=2)", 13, "'gamma' is given twice"},
      {"rbf(gamma=-1)", 11, "gamma of rbf is > 0, got -1"},
      {"rbf( gamma = 0 )", 14, "gamma of rbf is > 0, got 0"},
      {"rbf(gamma=-0)", 11, "gamma of rbf is > 0"},
      {"rbf(gamma=abc)", 11, "got 'abc'"},
      {"rbf(gamma=nan)", 11, "got 'nan'"},
      {"rbf(gamma=inf)", 11, "got 'inf'"},
      {"rbf(gamma=-inf)", 11, "expected a number"},
      {"rbf(gamma=1e999)", 11, "out of the range"},
      {"rbf(gamma=1e-999)", 11, "out of the range"},
      {"rbf(gamma=0x10)", 12, "got 'x'"},
      {"rbf(gamma=1.2.3)", 14, "got '.'"},
      {"rbf(gamma=1e)", 12, "got 'e'"},
      {"rbf(gama=1)", 5, "rbf has no parameter 'gama'; it has gamma, scales, columns"},
      {"rbf(1)", 5, "the name of a parameter, got '1'"},
      {"poly()", 1, "poly needs the parameter 'degree', an integer from 1 to 64"},
      {"linear() + poly(gamma=1)", 12, "needs the parameter 'degree'"},
      {"poly(degree=1.5)", 13, "integer from 1 to 64, got 1.5"},
      {"poly(degree=0)", 13, "got 0"},
      {"poly(degree=65)", 13, "got 65"},
      {"poly(degree=-2)", 13, "got -2"},
      {"poly(degree=two)", 13, "got 'two'"},
      {"poly(degree=1e300)", 13, "got 1e+300"},
      {"poly(degree=2, coef0=scale)", 22, "coef0 is a number, got 'scale'"},
      {"poly(degree=2, r=1)", 16, "it has degree, gamma, coef0, columns"},
      {"rbf(gamma=1)\n", 13, "byte 10"},
      {"rbf\x01()", 4, "byte 1"},
      {std::string("rbf()\0", 6), 6, "byte 0"},
      {"γ()", 1, "byte 206"},
      {"rbf(γ=1)", 5, "byte 206"},
      {"linear()\xff", 9, "byte 255"},
      {"linear() + \x7f", 12, "byte 127"},
  };
  for (const Malformed& c : kCases) {
    const absl::Status status = KernelExpression::Parse(c.text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.text;
    const std::optional<ErrorDetail> detail = DetailOf(status);
    ASSERT_TRUE(detail.has_value()) << c.text << ": " << status;
    EXPECT_EQ(detail->reason, "EXPRESSION_INVALID") << c.text;
    EXPECT_EQ(detail->metadata.at("column"), absl::StrCat(c.column)) << c.text << ": " << status;
    // A message about a parameter names it; the others have only the place.
    EXPECT_EQ(status.message().find(absl::StrCat("column ", c.column, ":")) != std::string::npos,
              detail->field.empty());
    EXPECT_NE(status.message().find(c.says), std::string::npos) << c.text << ": " << status;
  }
}

TEST(KernelParserTest, TextIsBoundedBeforeItIsRead) {
  const std::string most = "linear()" + std::string(4096 - 8, ' ');
  EXPECT_TRUE(KernelExpression::Parse(most).ok());
  const absl::Status status = KernelExpression::Parse(most + " ").status();
  EXPECT_EQ(DetailOf(status)->metadata.at("column"), "4097");
  EXPECT_NE(status.message().find("4097 bytes; at most 4096"), std::string::npos) << status;
  EXPECT_FALSE(KernelExpression::Parse(std::string(50 << 20, '(')).ok());
}

TEST(KernelParserTest, DepthIsBoundedSoThatNoTextOverflowsTheStack) {
  const auto nested = [](int depth) {
    return Repeated("(", depth) + "linear()" + Repeated(")", depth);
  };
  EXPECT_TRUE(KernelExpression::Parse(nested(32)).ok());
  const absl::Status status = KernelExpression::Parse(nested(33)).status();
  EXPECT_EQ(DetailOf(status)->metadata.at("column"), "34") << status;
  EXPECT_NE(status.message().find("deeper than 32"), std::string::npos);
  EXPECT_FALSE(KernelExpression::Parse(nested(2000)).ok());
  EXPECT_FALSE(KernelExpression::Parse(std::string(10000, '(')).ok());
  EXPECT_FALSE(KernelExpression::Parse(std::string(4096, '(')).ok());
  for (const char* function : {"exp(", "normalize("}) {
    const auto deep = [&](int depth) {
      return Repeated(function, depth) + "linear()" + Repeated(")", depth);
    };
    EXPECT_FALSE(KernelExpression::Parse(deep(33)).ok()) << function;
    EXPECT_FALSE(KernelExpression::Parse(Repeated(function, 400)).ok()) << function;
  }
  EXPECT_TRUE(KernelExpression::Parse(Repeated("exp(", 32) + "linear()" + Repeated(")", 32)).ok());
}

// Each normalize needs a factor program, which contains everything inside of the normalize.
TEST(KernelParserTest, WhatCompilesToTooMuchIsRefusedAndNotTried) {
  const auto nested = [](int depth) {
    return Repeated("normalize(", depth) + "linear()" + Repeated(")", depth);
  };
  EXPECT_TRUE(KernelExpression::Parse(nested(16)).ok());
  absl::Status status = KernelExpression::Parse(nested(17)).status();
  EXPECT_EQ(ReasonOf(status), "EXPRESSION_INVALID");
  EXPECT_NE(status.message().find("needs 17 different weights and norms; at most 16"),
            std::string::npos)
      << status;
  const std::string wide = Repeated("rbf(gamma=1)+", 200) + "linear()";
  EXPECT_TRUE(KernelExpression::Parse(wide).ok());
  status = KernelExpression::Parse("normalize(" + wide + ")").status();
  EXPECT_NE(status.message().find("operations; at most 1024 are allowed"), std::string::npos)
      << status;
  std::string forms = "linear()";
  for (int i = 0; i < 9; ++i) forms += absl::StrCat("+bilinear(diagonal=[", i, "])");
  EXPECT_NE(KernelExpression::Parse(forms).status().message().find(
                "needs 9 different bilinear forms; at most 8"),
            std::string::npos);
}

// Two values of gamma that are not resolved yet may become one number or two different ones. So
// they are counted as different.
TEST(KernelParserTest, WhatIsStillToBeResolvedCountsAsDifferent) {
  std::string text = "linear()";
  for (int i = 0; i < 8; ++i) {
    absl::StrAppend(&text, "+normalize(rbf()+weight(constant=2)*", i + 1,
                    "*linear())+normalize(rbf(gamma=median)+weight(constant=2)*", i + 1,
                    "*linear())");
  }
  const absl::Status status = KernelExpression::Parse(text).status();
  EXPECT_NE(status.message().find("needs 17 different weights and norms"), std::string::npos)
      << status;
}

// A list is bounded by the longest text, 4,096 bytes.
TEST(KernelParserTest, ListsAreBoundedByTheText) {
  const std::string most = "bilinear(diagonal=[" + Repeated("1,", 2037) + "1])";
  ASSERT_LE(most.size(), 4096u);
  EXPECT_TRUE(KernelExpression::Parse(most).ok());
  EXPECT_FALSE(KernelExpression::Parse("bilinear(diagonal=[" + Repeated("1,", 5000)).ok());
}

TEST(KernelParserTest, NumberOfPartsIsBounded) {
  // 255 leaves and their sum are 256 parts.
  const std::string most = Repeated("linear()+", 254) + "linear()";
  EXPECT_TRUE(KernelExpression::Parse(most).ok());
  const absl::Status status = KernelExpression::Parse(most + "+linear()").status();
  EXPECT_NE(status.message().find("more than 256 parts"), std::string::npos) << status;
}

// Parameters are finite, but 1/length_scale² and the like may not be. Every text is refused with
// its place, or compiles.
TEST(KernelParserTest, ExtremeParametersAreRefusedOrCompile) {
  for (const char* text : {"matern(length_scale=1e-160)", "rational_quadratic(length_scale=1e-300)",
                           "rational_quadratic(alpha=1e-300, length_scale=1e-20)",
                           "rbf(scales=[1e-300, 1])", "laplacian(scales=[1e-310, 1])",
                           "1e300*rbf(gamma=1) + normalize(matern(length_scale=1e-320))"}) {
    EXPECT_THAT(
        KernelExpression::Parse(text).status(),
        IsError(StatusCode::kInvalidArgument, _, _, HasSubstr("beyond the range of float64")))
        << text;
  }
  int refused = 0;
  int compiled = 0;
  for (const LeafKernel* leaf : LeafKernels()) {
    std::string required;
    for (const Parameter& parameter : leaf->parameters) {
      if (parameter.absent == Parameter::Absent::kRequired) {
        absl::StrAppend(&required, parameter.name, "=2, ");
      }
    }
    for (const Parameter& parameter : leaf->parameters) {
      for (const char* value : {"4.9e-324", "1e-310", "1e-160", "1e160", "1.7e308", "-1.7e308"}) {
        for (const char* form : {"%s", "[%s]", "[%s, %s]"}) {
          const std::string argument = absl::StrReplaceAll(form, {{"%s", value}});
          const std::string text =
              absl::StrCat(leaf->name, "(", required, parameter.name, "=", argument, ")");
          const absl::StatusOr<KernelExpression> kernel = KernelExpression::Parse(text);
          ++(kernel.ok() ? compiled : refused);
          if (kernel.ok()) KernelProgram::Compile(kernel->Resolved(1e308, 1e308));
        }
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(compiled, 20);
}

// Every expression that the parser accepts must compile, because Compile ends the process if it
// does not accept a program. In these expressions, each level leaves a term and a factor on the
// program's stack.
TEST(KernelParserTest, DeepestExpressionsCompile) {
  for (const char* level :
       {"linear()+(", "linear()*(", "linear()+linear()*(", "linear()+rbf(gamma=1)*2*(", "2*(",
        "linear()+2*(", "linear()*linear()+linear()*exp("}) {
    for (int depth = 1; depth <= 33; ++depth) {
      const std::string text =
          Repeated(level, depth) + "linear()+linear()*linear()" + Repeated(")", depth);
      const absl::StatusOr<KernelExpression> kernel = KernelExpression::Parse(text);
      EXPECT_EQ(kernel.ok(), depth <= 32) << text;
      if (!kernel.ok()) continue;
      EXPECT_FALSE(KernelProgram::Compile(*kernel).ops().empty());
      EXPECT_EQ(KernelExpression::Parse(kernel->ToText())->ToText(), kernel->ToText());
    }
  }
}

TEST(NumberToTextTest, ReadsBackEqual) {
  for (const double value : {0.1, 1.0 / 3, 1e300, -5e-324, 0.0, 123456789.0, 2.5}) {
    double back = 0;
    ASSERT_TRUE(absl::SimpleAtod(NumberToText(value), &back));
    EXPECT_EQ(back, value);
  }
}

}  // namespace
}  // namespace phimap::testing
