#include "core/kernel/kernel_work.h"

#include <algorithm>

#include "core/kernel/kernel_op_table.h"
#include "core/kernel/kernel_program.h"
#include "core/status/check.h"

namespace phimap {
namespace {

constexpr double kLargest = static_cast<double>(int64_t{1} << 40);

// Stands for "no bound": larger than kLargest.
constexpr double kUnbounded = 1e300;

double Dimension(const KernelNode& node, double columns) {
  switch (node.kind) {
    case KernelNode::Kind::kLeaf:
      return node.leaf->dimension == nullptr ? kUnbounded
                                             : node.leaf->dimension(node.values, columns);
    case KernelNode::Kind::kScaled:
    case KernelNode::Kind::kNormalized:  // each φ(x) scaled
      return Dimension(*node.children[0], columns);
    case KernelNode::Kind::kSum: {
      double sum = 0;
      for (const auto& child : node.children) sum += Dimension(*child, columns);
      return sum;
    }
    case KernelNode::Kind::kProduct: {
      double product = 1;
      for (const auto& child : node.children) {
        product = std::min(kUnbounded, product * Dimension(*child, columns));
      }
      return product;
    }
    case KernelNode::Kind::kExp:
      return kUnbounded;
  }
  PHIMAP_CHECK(false);
}

}  // namespace

std::optional<int64_t> FeatureDimension(const KernelExpression& kernel, int64_t columns) {
  PHIMAP_CHECK(columns >= 1);
  const double dimension = Dimension(kernel.root(), static_cast<double>(columns));
  if (!(dimension <= kLargest)) return std::nullopt;
  return static_cast<int64_t>(dimension + 0.5);
}

ValueWork WorkOfValue(const KernelExpression& kernel, int64_t columns) {
  constexpr double kOpsOfRbf = 3;
  // Cost of an L1 distance, a form or a column sum, per column, relative to a value of an rbf.
  // Measured: 0.05 to 0.1.
  constexpr double kElementsOfColumn = 0.1;
  const KernelProgram program = KernelProgram::Compile(kernel.Resolved(1, 1));
  const double passes =
      (program.uses_l1_distances() ? 1 : 0) + static_cast<double>(program.forms().size());
  // Cost of the column sums relative to a value of an rbf.
  double sums = 0;
  for (const ColumnSum& sum : program.sums()) {
    sums += kElementsOfColumn * static_cast<double>(sum.ColumnsReadOf(columns));
  }
  // Cost of a string kernel's value relative to a value of an rbf. Measured: 20 to 150 ns on
  // strings of 256 bytes, to count a string's n-grams and to visit those that it shares with other
  // strings.
  constexpr double kElementsOfString = 60;
  double operations = 0;
  for (const KernelOp& op : program.ops()) operations += FindKernelOp(op.code)->thirds_of_rbf;
  return {.products = program.uses_products() ? 1.0 : 0.0,
          .elements = kElementsOfString * static_cast<double>(program.strings().size()) +
                      operations / kOpsOfRbf +
                      passes * kElementsOfColumn * static_cast<double>(columns) + sums};
}

Work WorkOfKernelBlock(double n, double m, double columns, const ValueWork& value) {
  return {.product_flops = 2 * n * m * columns * value.products,
          .elements = n * m * value.elements};
}

double TiledTriangle(int64_t n) {
  constexpr int64_t kTileRows = 256;
  double values = 0;
  for (int64_t begin = 0; begin < n; begin += kTileRows) {
    const int64_t end = std::min(n, begin + kTileRows);
    values += static_cast<double>(end - begin) * static_cast<double>(end);
  }
  return values;
}

}  // namespace phimap
