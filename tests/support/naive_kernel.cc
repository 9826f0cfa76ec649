#include "tests/support/naive_kernel.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "core/kernel/leaf/columns.h"
#include "core/status/check.h"

namespace phimap::testing {

namespace {

using Kind = KernelNode::Kind;

long double Dot(const NaiveRow& x, const NaiveRow& y) {
  long double sum = 0;
  for (size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
  return sum;
}

long double SquaredDistance(const NaiveRow& x, const NaiveRow& y) {
  long double sum = 0;
  for (size_t k = 0; k < x.size(); ++k) sum += (x[k] - y[k]) * (x[k] - y[k]);
  return sum;
}

long double L1Distance(const NaiveRow& x, const NaiveRow& y) {
  long double sum = 0;
  for (size_t k = 0; k < x.size(); ++k) sum += std::abs(x[k] - y[k]);
  return sum;
}

long double Bilinear(const BilinearForm& form, const NaiveRow& x, const NaiveRow& y) {
  long double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < y.size(); ++j) {
      if (form.diagonal && i != j) continue;
      sum += x[i] * form.numbers[form.diagonal ? i : i * x.size() + j] * y[j];
    }
  }
  return sum;
}

long double WeightOf(const ParameterValues& values, const NaiveRow& x) {
  if (values.Has("norm_power")) {
    return std::pow(std::sqrt(Dot(x, x)), static_cast<long double>(values.Integer("norm_power")));
  }
  if (values.Has("gaussian")) return std::exp(-values.Number("gaussian") * Dot(x, x));
  return values.Number("constant");
}

long double BilinearOf(const ParameterValues& values, const NaiveRow& x, const NaiveRow& y) {
  const bool diagonal = values.Has("diagonal");
  return Bilinear({.columns = static_cast<int64_t>(x.size()),
                   .diagonal = diagonal,
                   .numbers = values.Numbers(diagonal ? "diagonal" : "matrix")},
                  x, y);
}

long double Cosine(const NaiveRow& x, const NaiveRow& y) {
  const long double norms = std::sqrt(Dot(x, x)) * std::sqrt(Dot(y, y));
  return norms > 0 ? Dot(x, y) / norms : 0;
}

// Returns the value of a kernel that is made of other kernels, where `child(i)` is the value of the
// i-th of them.
template <typename Child>
long double Composed(const KernelNode& node, const Child& child) {
  switch (node.kind) {
    case Kind::kScaled:
      return node.factor * child(0);
    case Kind::kSum: {
      long double sum = 0;
      for (size_t i = 0; i < node.children.size(); ++i) sum += child(i);
      return sum;
    }
    case Kind::kProduct: {
      long double result = 1;
      for (size_t i = 0; i < node.children.size(); ++i) result *= child(i);
      return result;
    }
    case Kind::kExp:
      return std::exp(child(0));
    case Kind::kLeaf:
    case Kind::kNormalized:
      break;
  }
  PHIMAP_CHECK(false);
}

}  // namespace

long double NaiveKernelOf(const KernelNode& node, long double product,
                          long double squared_distance) {
  if (node.kind != Kind::kLeaf) {
    return Composed(node, [&](size_t i) {
      return NaiveKernelOf(*node.children[i], product, squared_distance);
    });
  }
  const ParameterValues& values = node.values;
  const auto affine = [&] { return values.Number("gamma") * product + values.Number("coef0"); };
  if (node.leaf->name == "linear") return product;
  if (node.leaf->name == "poly") return std::pow(affine(), values.Integer("degree"));
  if (node.leaf->name == "sigmoid") return std::tanh(affine());
  if (node.leaf->name == "rbf") return std::exp(-values.Number("gamma") * squared_distance);
  PHIMAP_CHECK(false);
}

namespace {

// Returns the columns that a leaf kernel reads, each divided by its scale.
NaiveRow ChosenColumns(const ParameterValues& values, const NaiveRow& x) {
  NaiveRow chosen = x;
  if (values.Knows("columns") && values.Has("columns")) {
    chosen.assign(x.begin() + values.FirstColumn("columns"),
                  x.begin() + values.EndColumn("columns"));
  }
  if (!values.Knows("scales") || !values.Has("scales")) return chosen;
  for (size_t k = 0; k < chosen.size(); ++k) chosen[k] /= values.Numbers("scales")[k];
  return chosen;
}

bool HasFormula(absl::string_view name) {
  constexpr absl::string_view kNames[] = {"linear", "poly",   "sigmoid",  "rbf",   "laplacian",
                                          "delta",  "cosine", "bilinear", "weight"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Returns the value of a leaf by running its compiled program. This file has no formula for such a
// leaf; leaf_kernel_test has.
long double CompiledLeaf(const KernelNode& node, const NaiveRow& x, const NaiveRow& y) {
  const KernelExpression kernel(std::make_shared<const KernelNode>(node));
  return NaiveProgramOfRows(KernelProgram::Compile(kernel), x, y).at(0);
}

// Returns the value of a leaf kernel on all columns of x and y.
long double NaiveLeaf(const KernelNode& node, const NaiveRow& x, const NaiveRow& y) {
  const absl::string_view name = node.leaf->name;
  const ParameterValues& values = node.values;
  if (name == "laplacian") return std::exp(-values.Number("gamma") * L1Distance(x, y));
  if (name == "delta") return x == y ? 1 : 0;
  if (name == "cosine") return Cosine(x, y);
  if (name == "bilinear") return BilinearOf(values, x, y);
  if (name == "weight") return WeightOf(values, x) * WeightOf(values, y);
  return NaiveKernelOf(node, Dot(x, y), SquaredDistance(x, y));
}

}  // namespace

long double NaiveKernelOfRows(const KernelNode& node, const NaiveRow& x, const NaiveRow& y) {
  if (node.kind == Kind::kNormalized) {
    const KernelNode& inner = *node.children[0];
    return NaiveKernelOfRows(inner, x, y) /
           std::sqrt(NaiveKernelOfRows(inner, x, x) * NaiveKernelOfRows(inner, y, y));
  }
  if (node.kind != Kind::kLeaf) {
    return Composed(node, [&](size_t i) { return NaiveKernelOfRows(*node.children[i], x, y); });
  }
  const ParameterValues& values = node.values;
  if (!HasFormula(node.leaf->name)) return CompiledLeaf(node, x, y);
  if (!IsOfWholeRows(values)) {
    return NaiveLeaf(node, ChosenColumns(values, x), ChosenColumns(values, y));
  }
  return NaiveLeaf(node, x, y);
}

Matrix<double> NaiveKernelMatrix(const KernelExpression& kernel, const Matrix<double>& x,
                                 const Matrix<double>& z) {
  Matrix<double> out = Matrix<double>::Uninit(x.rows(), z.rows());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < z.rows(); ++j) {
      out(i, j) = static_cast<double>(NaiveKernel(kernel.root(), x.row(i), z.row(j), x.cols()));
    }
  }
  return out;
}

namespace {

// The operands that the operations of a program may push.
struct Operands {
  long double product = 0;
  long double squared_distance = 0;
  long double offset = 0;
  long double l1_distance = 0;
  NaiveRow forms;
  // The products f(x)·f(y) of the factors f at the rows x and y.
  NaiveRow factors;
};

// Not all operations are listed below. One that this file does not know ends the test program.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"

long double Unary(const KernelOp& op, long double t) {
  switch (op.code) {
    case KernelOpCode::kAffine:
      return t * op.a + op.b;
    case KernelOpCode::kScale:
      return t * op.a;
    case KernelOpCode::kPower:
      return std::pow(t, op.n);
    case KernelOpCode::kExp:
      return std::exp(t);
    case KernelOpCode::kCos:
      return std::cos(t);
    case KernelOpCode::kSin:
      return std::sin(t);
    case KernelOpCode::kTanh:
      return std::tanh(t);
    case KernelOpCode::kIsZero:
      return t == 0 ? 1 : 0;
    case KernelOpCode::kSquareRoot:
      return std::sqrt(t);
    case KernelOpCode::kInverse:
      return t > 0 ? 1 / t : std::numeric_limits<long double>::quiet_NaN();
    case KernelOpCode::kInverseOrZero:
      return t > 0 ? 1 / t : 0;
    case KernelOpCode::kLogOnePlus:
      return std::log1p(t);
    case KernelOpCode::kMatern: {
      const long double r = std::sqrt(t);
      return (op.n == 1 ? 1 : op.n == 3 ? 1 + r : 1 + r + r * r / 3) * std::exp(-r);
    }
    default:
      PHIMAP_CHECK(false);
  }
}

// Runs the operations and returns the stack.
std::vector<long double> RunOps(const std::vector<KernelOp>& ops, const Operands& in) {
  const long double turn = 2 * std::acos(-1.0L);
  std::vector<long double> stack;
  for (const KernelOp& op : ops) {
    switch (op.code) {
      case KernelOpCode::kPushProduct:
        stack.push_back(in.product);
        break;
      case KernelOpCode::kPushSquaredDistance:
        stack.push_back(in.squared_distance);
        break;
      case KernelOpCode::kPushShiftedProduct:
        stack.push_back(in.product + in.offset);
        break;
      case KernelOpCode::kPushL1Distance:
        stack.push_back(in.l1_distance);
        break;
      case KernelOpCode::kPushForm:
      case KernelOpCode::kPushColumnSum:
        stack.push_back(in.forms[op.n]);
        break;
      case KernelOpCode::kPushFactor:
        stack.push_back(in.factors[op.n]);
        break;
      case KernelOpCode::kCosTurns:
        stack.back() = op.a * std::cos(stack.back() * turn);
        break;
      case KernelOpCode::kCosSinTurns: {
        const long double angle = stack.back() * turn;
        stack.back() = op.a * std::cos(angle);
        stack.push_back(op.a * std::sin(angle));
        break;
      }
      case KernelOpCode::kAdd:
      case KernelOpCode::kMultiply: {
        const long double u = stack.back();
        stack.pop_back();
        stack.back() = op.code == KernelOpCode::kAdd ? stack.back() + u : stack.back() * u;
        break;
      }
      default:
        stack.back() = Unary(op, stack.back());
        break;
    }
  }
  return stack;
}

#pragma GCC diagnostic pop

long double Term(ColumnTerm term, long double x, long double y) {
  const bool positive = x >= 0 && y >= 0;
  const long double nan = std::numeric_limits<long double>::quiet_NaN();
  switch (term) {
    case ColumnTerm::kProduct:
      return x * y;
    case ColumnTerm::kAbsoluteDifference:
      return std::abs(x - y);
    case ColumnTerm::kSquaredDifference:
      return (x - y) * (x - y);
    case ColumnTerm::kHarmonicMean:
      return !positive ? nan : x + y == 0 ? 0 : 2 * x * y / (x + y);
    case ColumnTerm::kChiSquare:
      return !positive ? nan : x + y == 0 ? 0 : (x - y) * (x - y) / (x + y);
    case ColumnTerm::kMinimum:
      return positive ? std::min(x, y) : nan;
  }
  PHIMAP_CHECK(false);
}

long double SumOfColumns(const ColumnSum& sum, const NaiveRow& x, const NaiveRow& y) {
  long double total = 0;
  for (int64_t k = 0; k < sum.ColumnsReadOf(static_cast<int64_t>(x.size())); ++k) {
    total += sum.WeightOf(k) * Term(sum.term, x[sum.first + k], y[sum.first + k]);
  }
  return total;
}

// Returns f(x) for each factor f of the program.
NaiveRow FactorsOf(const KernelProgram& program, const NaiveRow& x) {
  Operands self{.product = Dot(x, x)};
  for (const BilinearForm& form : program.forms()) self.forms.push_back(Bilinear(form, x, x));
  for (const ColumnSum& sum : program.sums()) self.forms.push_back(SumOfColumns(sum, x, x));
  NaiveRow factors;
  for (const std::vector<KernelOp>& factor : program.factors()) {
    factors.push_back(RunOps(factor, self).at(0));
    self.factors.push_back(factors.back() * factors.back());
  }
  return factors;
}

}  // namespace

std::vector<long double> NaiveProgram(const KernelProgram& program, long double product,
                                      long double squared_distance) {
  return RunOps(program.ops(), {.product = product, .squared_distance = squared_distance});
}

std::vector<long double> NaiveProgramOfRows(const KernelProgram& program, const NaiveRow& x,
                                            const NaiveRow& y, long double offset) {
  Operands in{.product = Dot(x, y),
              .squared_distance = SquaredDistance(x, y),
              .offset = offset,
              .l1_distance = L1Distance(x, y)};
  for (const BilinearForm& form : program.forms()) in.forms.push_back(Bilinear(form, x, y));
  for (const ColumnSum& sum : program.sums()) in.forms.push_back(SumOfColumns(sum, x, y));
  in.factors = FactorsOf(program, x);
  const NaiveRow factors = FactorsOf(program, y);
  for (size_t m = 0; m < factors.size(); ++m) in.factors[m] *= factors[m];
  std::vector<long double> results = RunOps(program.ops(), in);
  PHIMAP_CHECK(static_cast<int>(results.size()) == program.results());
  return results;
}

KernelExpression MustParseKernel(const char* text) { return KernelExpression::Parse(text).value(); }

}  // namespace phimap::testing
