#include "tests/support/naive_kernel.h"

#include <cmath>
#include <vector>

#include "core/status/check.h"

namespace phimap::testing {

long double NaiveKernelOf(const KernelNode& node, long double product,
                          long double squared_distance) {
  using Kind = KernelNode::Kind;
  const auto child = [&](size_t i) {
    return NaiveKernelOf(*node.children[i], product, squared_distance);
  };
  switch (node.kind) {
    case Kind::kLinear:
      return product;
    case Kind::kPolynomial:
      return std::pow(node.gamma * product + node.coef0, node.degree);
    case Kind::kRbf:
      return std::exp(-node.gamma * squared_distance);
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
  }
  PHIMAP_CHECK(false);
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

long double NaiveProgram(const KernelProgram& program, long double product,
                         long double squared_distance) {
  std::vector<long double> stack;
  for (const KernelOp& op : program.ops()) {
    long double u = 0;
    if (op.code == KernelOpCode::kAdd || op.code == KernelOpCode::kMultiply) {
      u = stack.back();
      stack.pop_back();
    }
    switch (op.code) {
      case KernelOpCode::kPushProduct:
        stack.push_back(product);
        break;
      case KernelOpCode::kPushSquaredDistance:
        stack.push_back(squared_distance);
        break;
      case KernelOpCode::kAffine:
        stack.back() = stack.back() * op.a + op.b;
        break;
      case KernelOpCode::kScale:
        stack.back() *= op.a;
        break;
      case KernelOpCode::kPower:
        stack.back() = std::pow(stack.back(), op.n);
        break;
      case KernelOpCode::kExp:
        stack.back() = std::exp(stack.back());
        break;
      case KernelOpCode::kCos:
        stack.back() = std::cos(stack.back());
        break;
      case KernelOpCode::kSin:
        stack.back() = std::sin(stack.back());
        break;
      case KernelOpCode::kAdd:
        stack.back() += u;
        break;
      case KernelOpCode::kMultiply:
        stack.back() *= u;
        break;
    }
  }
  PHIMAP_CHECK(stack.size() == 1);
  return stack.back();
}

KernelExpression MustParseKernel(const char* text) {
  absl::StatusOr<KernelExpression> kernel = KernelExpression::Parse(text);
  PHIMAP_CHECK(kernel.ok());
  return *std::move(kernel);
}

}  // namespace phimap::testing
