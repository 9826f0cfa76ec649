// Compares each leaf kernel with its formula. Tests its values, its definiteness, its texts, and
// the rounding bound, which must be neither too small nor much larger than necessary. To test a new
// kernel, add a line to kLeafCases.
#include "core/kernel/leaf_kernel.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/engine.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_rounding.h"
#include "core/linalg/blas.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// The formula of a kernel in long double.
using Formula = long double (*)(const NaiveRow& x, const NaiveRow& y);

template <typename Term>
long double SumOf(const NaiveRow& x, const NaiveRow& y, const Term& term) {
  long double sum = 0;
  for (size_t k = 0; k < x.size(); ++k) sum += term(x[k], y[k]);
  return sum;
}

long double Square(long double t) { return t * t; }

[[maybe_unused]] long double Distance(const NaiveRow& x, const NaiveRow& y) {
  return std::sqrt(SumOf(x, y, [](long double a, long double b) { return Square(a - b); }));
}

struct LeafCase {
  const char* text;
  Formula formula;
  // The rounding bound is at most this many times the largest error seen.
  double slack = 30;
  // Use rows without negative numbers.
  bool of_positive = false;
  // The kernel's values are 0 and 1.
  bool is_exact = false;
};

// The cases are tested on rows of four columns.
const LeafCase kLeafCases[] = {
    {"linear()",
     [](const NaiveRow& x, const NaiveRow& y) {
       return SumOf(x, y, [](long double a, long double b) { return a * b; });
     }},
    {"rbf(gamma=0.3)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::exp(-0.3L *
                       SumOf(x, y, [](long double a, long double b) { return Square(a - b); }));
     }},
    {"laplacian(gamma=0.5)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::exp(-0.5L *
                       SumOf(x, y, [](long double a, long double b) { return std::abs(a - b); }));
     }},
    {"rbf(gamma=0.3, columns=1:3)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::exp(-0.3L * (Square(x[1] - y[1]) + Square(x[2] - y[2])));
     }},
    {"rbf(gamma=0.5, scales=[1, 2, 0.5, 4])",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::exp(-0.5L * (Square(x[0] - y[0]) + Square((x[1] - y[1]) / 2) +
                                Square((x[2] - y[2]) / 0.5L) + Square((x[3] - y[3]) / 4)));
     }},
    {"laplacian(gamma=1, scales=[2, 0.5], columns=2:4)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::exp(-(std::abs(x[2] - y[2]) / 2 + std::abs(x[3] - y[3]) / 0.5L));
     }},
    {"linear(columns=0:2)",
     [](const NaiveRow& x, const NaiveRow& y) { return x[0] * y[0] + x[1] * y[1]; }},
    {"poly(degree=2, gamma=0.5, coef0=1, columns=3)",
     [](const NaiveRow& x, const NaiveRow& y) { return Square(0.5L * x[3] * y[3] + 1); }},
    {"sigmoid(gamma=0.2, coef0=0.1, columns=0:3)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::tanh(0.2L * (x[0] * y[0] + x[1] * y[1] + x[2] * y[2]) + 0.1L);
     }},
    {"cosine(columns=1:3)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return (x[1] * y[1] + x[2] * y[2]) /
              std::sqrt((x[1] * x[1] + x[2] * x[2]) * (y[1] * y[1] + y[2] * y[2]));
     }},
    {"delta(columns=2)",
     [](const NaiveRow& x, const NaiveRow& y) { return x[2] == y[2] ? 1.0L : 0.0L; }, 30, false,
     true},
    {"matern(nu=0.5, length_scale=2)",
     [](const NaiveRow& x, const NaiveRow& y) { return std::exp(-Distance(x, y) / 2); }, 1000},
    {"matern(nu=1.5, length_scale=2)",
     [](const NaiveRow& x, const NaiveRow& y) {
       const long double r = std::sqrt(3.0L) * Distance(x, y) / 2;
       return (1 + r) * std::exp(-r);
     }},
    {"matern(nu=2.5, length_scale=2)",
     [](const NaiveRow& x, const NaiveRow& y) {
       const long double r = std::sqrt(5.0L) * Distance(x, y) / 2;
       return (1 + r + r * r / 3) * std::exp(-r);
     }},
    {"matern(nu=1.5, length_scale=1, scales=[1, 2, 0.5, 4])",
     [](const NaiveRow& x, const NaiveRow& y) {
       const NaiveRow s = {1, 2, 0.5, 4};
       NaiveRow u = x;
       NaiveRow v = y;
       for (size_t k = 0; k < s.size(); ++k) {
         u[k] /= s[k];
         v[k] /= s[k];
       }
       const long double r = std::sqrt(3.0L) * Distance(u, v);
       return (1 + r) * std::exp(-r);
     }},
    {"rational_quadratic(alpha=1.5, length_scale=2)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::pow(1 + Square(Distance(x, y)) / (2 * 1.5L * 4), -1.5L);
     }},
    {"rational_quadratic(alpha=1, length_scale=1, columns=1:3)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return 1 / (1 + (Square(x[1] - y[1]) + Square(x[2] - y[2])) / 2);
     }},
    {"additive_chi2()",
     [](const NaiveRow& x, const NaiveRow& y) {
       return SumOf(
           x, y, [](long double a, long double b) { return a + b == 0 ? 0 : 2 * a * b / (a + b); });
     },
     30, true},
    {"additive_chi2(columns=1)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return x[1] + y[1] == 0 ? 0 : 2 * x[1] * y[1] / (x[1] + y[1]);
     },
     30, true},
    {"chi2(gamma=0.7)",
     [](const NaiveRow& x, const NaiveRow& y) {
       return std::exp(-0.7L * SumOf(x, y, [](long double a, long double b) {
         return a + b == 0 ? 0 : Square(a - b) / (a + b);
       }));
     },
     30, true},
    {"histogram_intersection()",
     [](const NaiveRow& x, const NaiveRow& y) {
       return SumOf(x, y, [](long double a, long double b) { return std::min(a, b); });
     },
     30, true},
};

constexpr int64_t kRows = 40;

Matrix<double> RowsFor(const LeafCase& c, uint64_t seed) {
  Matrix<double> rows = NormalRows({.rows = kRows, .cols = 4, .seed = seed});
  for (int64_t i = 0; i < rows.size(); ++i) {
    double& value = rows.data()[i];
    if (c.of_positive) value = std::max(0.0, value);  // half of them 0
    value = static_cast<float>(value);
  }
  return rows;
}

NaiveRow NaiveRowOf(const Matrix<double>& rows, int64_t i) {
  return NaiveRow(rows.row(i), rows.row(i) + rows.cols());
}

Matrix<float> LeafValuesInFloat32(const KernelProgram& program, const Matrix<double>& x,
                                  const Matrix<double>& z) {
  ServingStages<float> stages;
  stages.features = ProductFeatures<float>{Converted<float, double>(z.view()), program, {}};
  Plan plan;
  plan.input.columns = x.cols();
  plan.stages = std::move(stages);
  const auto engine = Engine::Load(plan).value();
  Matrix<float> values(x.rows(), z.rows());
  TransformPart part{.rows = WireRows(x), .features = values.data()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(part.status.ok()) << part.status;
  return values;
}

TEST(LeafKernelTest, ValuesAreThoseOfTheFormula) {
  for (const LeafCase& c : kLeafCases) {
    SCOPED_TRACE(c.text);
    const Matrix<double> x = RowsFor(c, 1);
    const Matrix<double> z = RowsFor(c, 2);
    const KernelProgram program = KernelProgram::Compile(MustParseKernel(c.text));
    Matrix<double> out(kRows, kRows);
    KernelBlock(program, x.view(), SquaredNorms(x.view()), z.view(), SquaredNorms(z.view()),
                out.view());
    const std::vector<double> self = KernelDiagonal(program, x.view(), SquaredNorms(x.view()));
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kRows; ++j) {
        const auto expected = static_cast<double>(c.formula(NaiveRowOf(x, i), NaiveRowOf(z, j)));
        // Values are under 30, and every step of the computation has only a few roundings.
        ASSERT_NEAR(out(i, j), expected, 1e-13) << i << ", " << j;
      }
      ASSERT_NEAR(self[i], static_cast<double>(c.formula(NaiveRowOf(x, i), NaiveRowOf(x, i))),
                  1e-13);
    }
  }
}

// kernel_block_test evaluates bilinear and weight, whose parameters are matrices and powers.
TEST(LeafKernelTest, EveryOtherKernelOfNumbersHasAFormula) {
  const std::set<absl::string_view> elsewhere = {"bilinear", "weight"};
  for (const LeafKernel* leaf : LeafKernels()) {
    if (leaf->input != nullptr || elsewhere.count(leaf->name) > 0) continue;
    EXPECT_TRUE(std::any_of(std::begin(kLeafCases), std::end(kLeafCases),
                            [&](const LeafCase& c) {
                              return std::string(c.text).rfind(absl::StrCat(leaf->name, "("), 0) ==
                                     0;
                            }))
        << leaf->name << ": add its formula to kLeafCases";
  }
}

TEST(LeafKernelTest, GramMatricesAreAsDefiniteAsTheKernelSays) {
  for (const LeafCase& c : kLeafCases) {
    SCOPED_TRACE(c.text);
    const KernelExpression kernel = MustParseKernel(c.text);
    if (!kernel.IsProvenPositiveSemidefinite()) continue;
    const Matrix<double> x = RowsFor(c, 3);
    Matrix<double> gram(kRows, kRows);
    KernelBlock(KernelProgram::Compile(kernel), x.view(), SquaredNorms(x.view()), x.view(),
                SquaredNorms(x.view()), gram.view());
    const std::vector<double> values = SymmetricEigenvalues(gram.view()).value();
    EXPECT_GE(values.front(), -1e-12 * values.back());
  }
}

TEST(LeafKernelTest, TextsReadBackEqual) {
  for (const LeafCase& c : kLeafCases) {
    const KernelExpression kernel = MustParseKernel(c.text);
    EXPECT_EQ(kernel.ToText(), c.text);
    EXPECT_EQ(KernelProgram::Compile(MustParseKernel(kernel.ToText().c_str())),
              KernelProgram::Compile(kernel));
  }
}

// The error in float32 never exceeds the rounding bound, and the bound is not far above it.
TEST(LeafKernelTest, ErrorsInFloat32AreBoundedAndTheBoundSaysSomething) {
  constexpr double kUnit32 = 0x1p-24;
  for (const LeafCase& c : kLeafCases) {
    SCOPED_TRACE(c.text);
    const Matrix<double> x = RowsFor(c, 4);
    const Matrix<double> z = RowsFor(c, 5);
    const KernelProgram program = KernelProgram::Compile(MustParseKernel(c.text));
    const KernelRounding rounding(program, z.view(), kUnit32);
    const Matrix<float> values = LeafValuesInFloat32(program, x, z);
    const std::vector<double> norms = SquaredNorms(x.view());
    double closest = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      double largest = 0;
      double error = 0;
      for (int64_t j = 0; j < kRows; ++j) {
        const auto exact = static_cast<double>(c.formula(NaiveRowOf(x, i), NaiveRowOf(z, j)));
        largest = std::max(largest, std::abs(exact));
        error = std::max(error, std::abs(values(i, j) - exact));
      }
      const double bound = kUnit32 * rounding.Of(x.row(i), norms[i], largest);
      ASSERT_LE(error, bound) << "row " << i;
      if (bound > 0) closest = std::max(closest, error / bound);
    }
    if (c.is_exact) continue;
    EXPECT_GT(closest, 1 / c.slack);
  }
}

TEST(LeafKernelTest, EveryKernelIsDescribed) {
  std::set<absl::string_view> names;
  for (const KernelCapability& kernel : KernelCapabilities()) {
    SCOPED_TRACE(kernel.name);
    EXPECT_TRUE(names.insert(kernel.name).second);
    EXPECT_FALSE(kernel.formula.empty());
    EXPECT_FALSE(kernel.line.empty());
    for (const Parameter& parameter : kernel.parameters) {
      SCOPED_TRACE(parameter.name);
      EXPECT_FALSE(parameter.line.empty());
      EXPECT_FALSE(parameter.Expected().empty());
      EXPECT_FALSE(parameter.DefaultText().empty());
    }
  }
  for (const char* name : {"linear", "rbf", "spectrum", "exp", "normalize"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
  EXPECT_EQ(FindLeafKernel("rbf")->name, "rbf");
  EXPECT_EQ(FindLeafKernel("exp"), nullptr);
}

}  // namespace
}  // namespace phimap::testing
