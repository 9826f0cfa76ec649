#include <string>
#include <utility>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

std::vector<KernelOpCode> CodesOf(const std::vector<KernelOp>& ops) {
  std::vector<KernelOpCode> codes;
  for (const KernelOp& op : ops) codes.push_back(op.code);
  return codes;
}

TEST(ExpandedDistancesTest, MaternOneHalfReadsDifferencesAndReadProductsBefore) {
  const KernelProgram now =
      KernelProgram::Compile(MustParseKernel("matern(nu=0.5, length_scale=2)"));
  EXPECT_EQ(CodesOf(now.ops()),
            (std::vector<KernelOpCode>{KernelOpCode::kPushColumnSum, KernelOpCode::kScale,
                                       KernelOpCode::kMatern}));
  EXPECT_FALSE(now.uses_products());
  const KernelProgram before = WithExpandedDistances(now);
  EXPECT_EQ(CodesOf(before.ops()),
            (std::vector<KernelOpCode>{KernelOpCode::kPushSquaredDistance, KernelOpCode::kScale,
                                       KernelOpCode::kMatern}));
  EXPECT_TRUE(before.is_plain());
  EXPECT_EQ(WithExpandedDistances(before), before);
}

// In long double, in which both forms of r² have more digits than are compared, both programs have
// the same values.
TEST(ExpandedDistancesTest, ProgramsWithOtherPartsKeepTheirValues) {
  for (const char* text :
       {"matern(nu=0.5)", "linear(columns=0:2) + matern(nu=0.5)*linear(columns=2)",
        "matern(nu=0.5) + rbf(gamma=1, scales=[1, 2, 4])*matern(nu=0.5, columns=1:3)",
        "bilinear(diagonal=[1, 2, 3]) + normalize(exp(matern(nu=0.5)) + linear(columns=1))",
        "matern(nu=1.5) + matern(nu=0.5, scales=[1, 2, 3])"}) {
    SCOPED_TRACE(text);
    const KernelProgram now = KernelProgram::Compile(MustParseKernel(text));
    const KernelProgram before = WithExpandedDistances(now);
    const bool has_whole_rows = std::string(text).find("matern(nu=0.5)") != std::string::npos;
    EXPECT_EQ(before == now, !has_whole_rows);
    EXPECT_EQ(before.sums().size(), now.sums().size() - (has_whole_rows ? 1 : 0));
    const Matrix<double> rows = UniformRows({.rows = 6, .cols = 3, .seed = 4});
    for (int64_t i = 1; i < rows.rows(); ++i) {
      const NaiveRow x(rows.row(0), rows.row(0) + 3);
      const NaiveRow y(rows.row(i), rows.row(i) + 3);
      EXPECT_NEAR(static_cast<double>(NaiveProgramOfRows(now, x, y)[0]),
                  static_cast<double>(NaiveProgramOfRows(before, x, y)[0]), 1e-14);
    }
  }
}

}  // namespace
}  // namespace phimap::testing
