#include "tests/support/naive_kernel.h"

#include <cmath>
#include <limits>
#include <vector>

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

long double Weight(const KernelNode& node, const NaiveRow& x) {
  switch (node.weight) {
    case KernelNode::Weight::kNormPower:
      return std::pow(std::sqrt(Dot(x, x)), static_cast<long double>(node.weight_parameter));
    case KernelNode::Weight::kGaussian:
      return std::exp(-node.weight_parameter * Dot(x, x));
    case KernelNode::Weight::kConstant:
      return node.weight_parameter;
  }
  PHIMAP_CHECK(false);
}

// A kernel made of others, given their values.
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
    default:
      PHIMAP_CHECK(false);
  }
}

}  // namespace

long double NaiveKernelOf(const KernelNode& node, long double product,
                          long double squared_distance) {
  switch (node.kind) {
    case Kind::kLinear:
      return product;
    case Kind::kPolynomial:
      return std::pow(node.gamma * product + node.coef0, node.degree);
    case Kind::kSigmoid:
      return std::tanh(node.gamma * product + node.coef0);
    case Kind::kRbf:
      return std::exp(-node.gamma * squared_distance);
    default:
      return Composed(node, [&](size_t i) {
        return NaiveKernelOf(*node.children[i], product, squared_distance);
      });
  }
}

long double NaiveKernelOfRows(const KernelNode& node, const NaiveRow& x, const NaiveRow& y) {
  switch (node.kind) {
    case Kind::kLinear:
    case Kind::kPolynomial:
    case Kind::kSigmoid:
    case Kind::kRbf:
      return NaiveKernelOf(node, Dot(x, y), SquaredDistance(x, y));
    case Kind::kLaplacian:
      return std::exp(-node.gamma * L1Distance(x, y));
    case Kind::kDelta:
      return x == y ? 1 : 0;
    case Kind::kCosine: {
      const long double norms = std::sqrt(Dot(x, x)) * std::sqrt(Dot(y, y));
      return norms > 0 ? Dot(x, y) / norms : 0;
    }
    case Kind::kBilinear:
      return Bilinear(*node.form, x, y);
    case Kind::kWeight:
      return Weight(node, x) * Weight(node, y);
    case Kind::kNormalized: {
      const KernelNode& inner = *node.children[0];
      return NaiveKernelOfRows(inner, x, y) /
             std::sqrt(NaiveKernelOfRows(inner, x, x) * NaiveKernelOfRows(inner, y, y));
    }
    default:
      return Composed(node, [&](size_t i) { return NaiveKernelOfRows(*node.children[i], x, y); });
  }
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

// What operations read.
struct Operands {
  long double product = 0;
  long double squared_distance = 0;
  long double offset = 0;
  long double l1_distance = 0;
  NaiveRow forms;
  // f(x)·f(y).
  NaiveRow factors;
};

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
    default:
      PHIMAP_CHECK(false);
  }
}

// What is left on the stack.
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

// f(x) of each factor.
NaiveRow FactorsOf(const KernelProgram& program, const NaiveRow& x) {
  Operands self{.product = Dot(x, x)};
  for (const BilinearForm& form : program.forms()) self.forms.push_back(Bilinear(form, x, x));
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
  in.factors = FactorsOf(program, x);
  const NaiveRow factors = FactorsOf(program, y);
  for (size_t m = 0; m < factors.size(); ++m) in.factors[m] *= factors[m];
  std::vector<long double> results = RunOps(program.ops(), in);
  PHIMAP_CHECK(static_cast<int>(results.size()) == program.results());
  return results;
}

KernelExpression MustParseKernel(const char* text) {
  absl::StatusOr<KernelExpression> kernel = KernelExpression::Parse(text);
  PHIMAP_CHECK(kernel.ok());
  return *std::move(kernel);
}

}  // namespace phimap::testing
