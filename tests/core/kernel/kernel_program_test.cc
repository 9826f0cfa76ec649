#include "core/kernel/kernel_program.h"

#include <cmath>
#include <limits>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"

namespace phimap {
namespace {

using Code = KernelOpCode;
using testing::MustParseKernel;

const KernelOp kPush{.code = Code::kPushProduct};
const KernelOp kDistance{.code = Code::kPushSquaredDistance};
const KernelOp kAdd{.code = Code::kAdd};
const KernelOp kExp{.code = Code::kExp};

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
        const auto expected =
            static_cast<double>(testing::NaiveKernelOf(kernel.root(), product, distance));
        EXPECT_NEAR(static_cast<double>(testing::NaiveProgram(program, product, distance)),
                    expected, 1e-15 * (1 + std::abs(expected)))
            << text;
      }
    }
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
      deep,
      many,
  };
  for (size_t i = 0; i < kBad.size(); ++i) {
    const absl::Status status = KernelProgram::FromOps(kBad[i]).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i << ": " << status;
    EXPECT_EQ(DetailOf(status)->reason, "BAD_KERNEL_PROGRAM") << i;
  }
}

TEST(KernelProgramTest, UnknownOperationIsUnimplementedNotDamaged) {
  for (const int code : {0, 11, 255}) {
    const absl::Status status =
        KernelProgram::FromOps({kPush, {.code = static_cast<Code>(code)}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << code;
  }
}

// Numbers of the format: they never change.
TEST(KernelProgramTest, OpcodesAreFrozen) {
  EXPECT_EQ(static_cast<int>(Code::kPushProduct), 1);
  EXPECT_EQ(static_cast<int>(Code::kPushSquaredDistance), 2);
  EXPECT_EQ(static_cast<int>(Code::kAffine), 3);
  EXPECT_EQ(static_cast<int>(Code::kScale), 4);
  EXPECT_EQ(static_cast<int>(Code::kPower), 5);
  EXPECT_EQ(static_cast<int>(Code::kExp), 6);
  EXPECT_EQ(static_cast<int>(Code::kAdd), 7);
  EXPECT_EQ(static_cast<int>(Code::kMultiply), 8);
}

}  // namespace
}  // namespace phimap
