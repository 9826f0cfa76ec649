#include "core/kernel/kernel_program.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"

namespace phimap::testing {
namespace {

using Code = KernelOpCode;

const KernelOp kPush{.code = Code::kPushProduct};
const KernelOp kDistance{.code = Code::kPushSquaredDistance};
const KernelOp kAdd{.code = Code::kAdd};
const KernelOp kExp{.code = Code::kExp};
const KernelOp kPair{.code = Code::kCosSinTurns, .a = 1};

TEST(KernelProgramTest, DefaultIsTheIdentity) {
  EXPECT_TRUE(KernelProgram().is_identity());
  EXPECT_FALSE(KernelProgram().uses_norms());
  EXPECT_EQ(KernelProgram(), KernelProgram::Compile(MustParseKernel("linear()")));
}

TEST(KernelProgramTest, CompiledProgramMeansWhatTheExpressionMeans) {
  for (const char* text :
       {"linear()", "poly(degree=1)", "poly(degree=3, gamma=0.5, coef0=1)", "rbf(gamma=0.7)",
        "2*linear()", "linear() + rbf(gamma=1) + 3*poly(degree=2, coef0=1)",
        "(linear() + rbf(gamma=1))*(poly(degree=2) + 0.5*rbf(gamma=2))*0.25"}) {
    const KernelExpression kernel = MustParseKernel(text);
    const KernelProgram program = KernelProgram::Compile(kernel);
    for (const double product : {-1.5, 0.0, 0.3, 2.0}) {
      for (const double distance : {0.0, 0.4, 3.0}) {
        const auto expected = static_cast<double>(NaiveKernelOf(kernel.root(), product, distance));
        EXPECT_NEAR(static_cast<double>(NaiveProgram(program, product, distance)[0]), expected,
                    1e-15 * (1 + std::abs(expected)))
            << text;
      }
    }
  }
}

TEST(KernelProgramTest, ComposedProgramMeansWhatTheExpressionMeans) {
  const NaiveRow x = {0.5L, -1, 2};
  const NaiveRow z = {0.25L, 1, 1.5L};
  for (const char* text :
       {"sigmoid(gamma=0.3, coef0=1)",
        "laplacian(gamma=0.3)",
        "delta()",
        "cosine()",
        "bilinear(matrix=[2, 1, 0; 1, 2, 0; 0, 0, 3])",
        "bilinear(diagonal=[1, 2, 3])",
        "weight(constant=2)",
        "weight(gaussian=0.1)",
        "weight(gaussian=-0.1)",
        "weight(norm_power=0)",
        "weight(norm_power=1)",
        "weight(norm_power=2)",
        "weight(norm_power=3)",
        "weight(norm_power=-1)",
        "weight(norm_power=-4)",
        "exp(linear())",
        "normalize(poly(degree=2, coef0=1))",
        "normalize(normalize(exp(cosine()))*weight(norm_power=2))",
        "normalize(bilinear(diagonal=[1, 2, 3]) + delta())",
        "weight(constant=2)*(laplacian(gamma=1) + 3*normalize(rbf(gamma=0.1) + linear()))"}) {
    const KernelExpression kernel = MustParseKernel(text);
    const KernelProgram program = KernelProgram::Compile(kernel);
    for (const NaiveRow& y : {x, z}) {
      const auto expected = static_cast<double>(NaiveKernelOfRows(kernel.root(), x, y));
      EXPECT_NEAR(static_cast<double>(NaiveProgramOfRows(program, x, y)[0]), expected,
                  1e-14 * (1 + std::abs(expected)))
          << text;
    }
  }
}

TEST(KernelProgramTest, EqualFactorsAndFormsAreComputedOnce) {
  const KernelProgram program = KernelProgram::Compile(MustParseKernel(
      "cosine() + 2*cosine()*cosine() + bilinear(diagonal=[1, 2])*weight(constant=3)"
      " + bilinear(diagonal=[1, 2]) + weight(constant=3)"));
  EXPECT_EQ(program.factors().size(), 2u);
  EXPECT_EQ(program.forms().size(), 1u);
  EXPECT_TRUE(program.uses_norms());
  EXPECT_FALSE(program.uses_l1_distances());
  EXPECT_FALSE(program.is_plain());
}

TEST(KernelProgramTest, OnlyWhatIsReadMustBeComputed) {
  const auto uses = [](const char* text) {
    const KernelProgram program = KernelProgram::Compile(MustParseKernel(text));
    return std::string(program.uses_products() ? "product " : "") +
           (program.uses_norms() ? "norms " : "") + (program.uses_l1_distances() ? "l1" : "");
  };
  EXPECT_EQ(uses("linear()"), "product ");
  EXPECT_EQ(uses("sigmoid(gamma=1)"), "product ");
  EXPECT_EQ(uses("laplacian(gamma=1)"), "l1");
  EXPECT_EQ(uses("delta()"), "l1");
  EXPECT_EQ(uses("rbf(gamma=1) + laplacian(gamma=1)"), "product norms l1");
  EXPECT_EQ(uses("bilinear(diagonal=[1])"), "");
  EXPECT_EQ(uses("weight(gaussian=1)*laplacian(gamma=1)"), "norms l1");
}

TEST(KernelProgramTest, UntrustedFactorsAndFormsAreRefused) {
  const KernelOp factor0{.code = Code::kPushFactor, .n = 0};
  const KernelOp form0{.code = Code::kPushForm, .n = 0};
  const BilinearForm form{.columns = 2, .diagonal = false, .numbers = {1, 2, 2, 5}};
  EXPECT_TRUE(KernelProgram::FromParts({.ops = {factor0}, .factors = {{kPush}}}).ok());
  EXPECT_TRUE(KernelProgram::FromParts({.ops = {form0}, .forms = {form}}).ok());
  const auto with = [&](std::vector<double> numbers, int64_t columns) {
    return KernelProgramParts{.ops = {form0},
                              .forms = {{.columns = columns, .numbers = std::move(numbers)}}};
  };
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<KernelProgramParts> kBad = {
      {.ops = {factor0}},
      {.ops = {form0}},
      {.ops = {{.code = Code::kPushFactor, .n = -1}}, .factors = {{kPush}}},
      {.ops = {kPush}, .factors = {{}}},
      {.ops = {kPush}, .factors = {{kPush, kPush}}},
      {.ops = {kPush}, .factors = {{factor0}}},  // factor 0 refers to itself
      {.ops = {kPush}, .factors = {{kPush}, {{.code = Code::kPushFactor, .n = 1}}}},
      {.ops = {kPush},
       .factors = std::vector<std::vector<KernelOp>>(kMaxKernelFactors + 1, {kPush})},
      {.ops = {form0}, .forms = std::vector<BilinearForm>(kMaxKernelForms + 1, form)},
      {.ops = std::vector<KernelOp>(1, kPush),
       .factors = {std::vector<KernelOp>(kMaxKernelOps, kPush)}},
      with({1, 2, 3, 5}, 2),
      with({1, 2, 2}, 2),
      with({1, 2, 2, inf}, 2),
      with({}, 0),
  };
  for (size_t i = 0; i < kBad.size(); ++i) {
    EXPECT_THAT(KernelProgram::FromParts(kBad[i]).status(),
                IsError(StatusCode::kDataLoss, "KERNEL_PROGRAM_INVALID"))
        << i;
  }
}

TEST(KernelProgramTest, OnlyDistancesNeedNorms) {
  EXPECT_FALSE(KernelProgram::Compile(MustParseKernel("poly(degree=2)")).uses_norms());
  EXPECT_TRUE(KernelProgram::Compile(MustParseKernel("linear()*rbf(gamma=1)")).uses_norms());
  EXPECT_FALSE(KernelProgram::Compile(MustParseKernel("rbf(gamma=1)")).is_identity());
}

TEST(KernelProgramTest, OperationsThatKeepTheStackInOrderAreTaken) {
  EXPECT_TRUE(KernelProgram::FromOps({kPush}).ok());
  EXPECT_TRUE(KernelProgram::FromOps({kDistance}).ok());
  EXPECT_TRUE(KernelProgram::FromOps({kPush, kDistance, kAdd, kExp}).ok());
  EXPECT_TRUE(KernelProgram::FromOps(std::vector<KernelOp>(1, kPush)).ok());
  std::vector<KernelOp> deepest(kMaxKernelStack, kPush);
  deepest.insert(deepest.end(), kMaxKernelStack - 1, kAdd);
  EXPECT_TRUE(KernelProgram::FromOps(deepest).ok());
  std::vector<KernelOp> longest(kMaxKernelOps, kExp);
  longest[0] = kPush;
  EXPECT_TRUE(KernelProgram::FromOps(longest).ok());
}

TEST(KernelProgramTest, OnlyAPairOfCosineAndSineLeavesTwoNumbers) {
  EXPECT_EQ(KernelProgram::FromOps({kPush, kPair})->results(), 2);
  EXPECT_EQ(KernelProgram::FromOps({kPush, kExp})->results(), 1);
  EXPECT_FALSE(KernelProgram::FromOps({kPush, kPair})->uses_offsets());
  EXPECT_TRUE(KernelProgram::FromOps({{.code = Code::kPushShiftedProduct}, kPair})->uses_offsets());
  EXPECT_FALSE(KernelProgram::FromOps({{.code = Code::kPushShiftedProduct}})->is_identity());
}

TEST(KernelProgramTest, UntrustedOperationsAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<KernelOp> deep(kMaxKernelStack + 1, kPush);
  deep.insert(deep.end(), kMaxKernelStack, kAdd);
  std::vector<KernelOp> many(kMaxKernelOps + 1, kExp);
  many[0] = kPush;
  const std::vector<std::vector<KernelOp>> kBad = {
      {},
      {kExp},
      {kAdd},
      {kPush, kAdd},
      {kPush, kPush},
      {kPush, kPush, kAdd, kAdd},
      {kPush, {.code = Code::kPower, .n = 0}},
      {kPush, {.code = Code::kPower, .n = -3}},
      {kPush, {.code = Code::kScale, .a = nan}},
      {kPush, {.code = Code::kAffine, .a = 1, .b = inf}},
      {kPush, {.code = Code::kAffine, .a = -inf}},
      {kPush, kPair, kExp},
      {kPush, kPair, kAdd},
      {kPush, kPush, kPair},
      {kPair},
      deep,
      many,
  };
  for (size_t i = 0; i < kBad.size(); ++i) {
    EXPECT_THAT(KernelProgram::FromOps(kBad[i]).status(),
                IsError(StatusCode::kDataLoss, "KERNEL_PROGRAM_INVALID"))
        << i;
  }
}

TEST(KernelProgramTest, UnknownOperationIsUnimplementedNotDamaged) {
  for (const int code : {0, 200, 255}) {
    const absl::Status status =
        KernelProgram::FromOps({kPush, {.code = static_cast<Code>(code)}}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << code;
  }
}

// Opcodes are part of the artifact format, so their numbers never change.
TEST(KernelProgramTest, OpcodesAreFrozen) {
  EXPECT_EQ(static_cast<int>(Code::kPushProduct), 1);
  EXPECT_EQ(static_cast<int>(Code::kPushSquaredDistance), 2);
  EXPECT_EQ(static_cast<int>(Code::kAffine), 3);
  EXPECT_EQ(static_cast<int>(Code::kScale), 4);
  EXPECT_EQ(static_cast<int>(Code::kPower), 5);
  EXPECT_EQ(static_cast<int>(Code::kExp), 6);
  EXPECT_EQ(static_cast<int>(Code::kAdd), 7);
  EXPECT_EQ(static_cast<int>(Code::kMultiply), 8);
  EXPECT_EQ(static_cast<int>(Code::kCos), 9);
  EXPECT_EQ(static_cast<int>(Code::kSin), 10);
  EXPECT_EQ(static_cast<int>(Code::kPushShiftedProduct), 11);
  EXPECT_EQ(static_cast<int>(Code::kCosTurns), 12);
  EXPECT_EQ(static_cast<int>(Code::kCosSinTurns), 13);
  EXPECT_EQ(static_cast<int>(Code::kPushL1Distance), 20);
  EXPECT_EQ(static_cast<int>(Code::kPushForm), 21);
  EXPECT_EQ(static_cast<int>(Code::kPushFactor), 22);
  EXPECT_EQ(static_cast<int>(Code::kTanh), 23);
  EXPECT_EQ(static_cast<int>(Code::kIsZero), 24);
  EXPECT_EQ(static_cast<int>(Code::kSquareRoot), 25);
  EXPECT_EQ(static_cast<int>(Code::kInverse), 26);
  EXPECT_EQ(static_cast<int>(Code::kInverseOrZero), 27);
  EXPECT_EQ(static_cast<int>(Code::kPushString), 28);
  EXPECT_EQ(static_cast<int>(Code::kMatern), 29);
  EXPECT_EQ(static_cast<int>(Code::kLogOnePlus), 30);
  EXPECT_EQ(static_cast<int>(Code::kPushColumnSum), 31);
}

}  // namespace
}  // namespace phimap::testing
