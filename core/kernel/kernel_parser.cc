// The text form of kernel expressions: a recursive descent over
//   sum     = product { "+" product }
//   product = operand { "*" operand }
//   operand = number | call | "(" sum ")"
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/kernel_expression.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 256;
constexpr int kMaxDegree = 64;

using NodePtr = std::shared_ptr<const KernelNode>;

class KernelParser {
 public:
  explicit KernelParser(absl::string_view text) : scanner_(text) {}

  absl::StatusOr<NodePtr> Parse() {
    PHIMAP_ASSIGN_OR_RETURN(NodePtr root, Sum(0));
    if (!scanner_.AtEnd()) return scanner_.Expected("'+', '*' or the end");
    return root;
  }

 private:
  absl::StatusOr<NodePtr> Sum(int depth) {
    if (depth > kMaxDepth) {
      return ExpressionError(scanner_.column(),
                             absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    KernelNode sum{.kind = KernelNode::Kind::kSum, .column = scanner_.column()};
    do {
      PHIMAP_ASSIGN_OR_RETURN(NodePtr term, Product(depth));
      sum.children.push_back(std::move(term));
    } while (scanner_.TryConsume('+'));
    if (sum.children.size() == 1) return sum.children[0];
    return Counted(std::move(sum));
  }

  // Numbers multiply into one factor; what remains is a kernel or a product of kernels.
  absl::StatusOr<NodePtr> Product(int depth) {
    const int column = scanner_.column();
    KernelNode product{.kind = KernelNode::Kind::kProduct, .column = column};
    double factor = 1;
    bool scaled = false;
    do {
      const char next = scanner_.Peek();
      if (absl::ascii_isdigit(next) || next == '.' || next == '-') {
        PHIMAP_ASSIGN_OR_RETURN(const double number, scanner_.Number());
        factor *= number;
        scaled = true;
      } else {
        PHIMAP_ASSIGN_OR_RETURN(NodePtr operand, Operand(depth));
        product.children.push_back(std::move(operand));
      }
    } while (scanner_.TryConsume('*'));
    if (product.children.empty()) {
      return scanner_.Expected("'*' and a kernel: a number alone is not a kernel");
    }
    NodePtr result = product.children[0];
    if (product.children.size() > 1) {
      PHIMAP_ASSIGN_OR_RETURN(result, Counted(std::move(product)));
    }
    if (!scaled) return result;
    if (!(std::abs(factor) <= 1e300)) {
      return ExpressionError(column, "the product of the factors is out of range");
    }
    return Counted(KernelNode{.kind = KernelNode::Kind::kScaled,
                              .factor = factor,
                              .children = {std::move(result)},
                              .column = column});
  }

  absl::StatusOr<NodePtr> Operand(int depth) {
    if (scanner_.TryConsume('(')) {
      PHIMAP_ASSIGN_OR_RETURN(NodePtr inner, Sum(depth + 1));
      PHIMAP_RETURN_IF_ERROR(scanner_.Consume(')'));
      return inner;
    }
    PHIMAP_ASSIGN_OR_RETURN(Call call, Call::Parse(scanner_, "a kernel, a number or '('"));
    if (call.name() == "linear") return Linear(call);
    if (call.name() == "poly") return Polynomial(call);
    if (call.name() == "rbf") return Rbf(call);
    return ExpressionError(call.column(), absl::StrCat("unknown kernel '", call.name(),
                                                       "'; expected linear, poly or rbf"));
  }

  absl::StatusOr<NodePtr> Linear(Call& call) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({}));
    return Counted(KernelNode{.kind = KernelNode::Kind::kLinear, .column = call.column()});
  }

  absl::StatusOr<NodePtr> Polynomial(Call& call) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"degree", "gamma", "coef0"}));
    KernelNode node{.kind = KernelNode::Kind::kPolynomial, .column = call.column()};
    PHIMAP_ASSIGN_OR_RETURN(const int64_t degree,
                            call.TakeInteger("degree", 1, kMaxDegree, true, 0));
    node.degree = static_cast<int>(degree);
    PHIMAP_RETURN_IF_ERROR(TakeGamma(call, node, /*fallback=*/1));
    PHIMAP_ASSIGN_OR_RETURN(node.coef0, call.TakeNumber("coef0", 0));
    return Counted(std::move(node));
  }

  absl::StatusOr<NodePtr> Rbf(Call& call) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"gamma"}));
    KernelNode node{.kind = KernelNode::Kind::kRbf,
                    .gamma_source = KernelNode::Gamma::kScale,
                    .column = call.column()};
    const CallArgument* given = call.Take("gamma");
    if (given != nullptr) PHIMAP_RETURN_IF_ERROR(TakeGamma(call, node, /*fallback=*/1));
    if (node.gamma_source == KernelNode::Gamma::kNumber && node.gamma <= 0) {
      return ExpressionError(given->value_column,
                             absl::StrCat("gamma of rbf is > 0, got ", NumberToText(node.gamma)));
    }
    return Counted(std::move(node));
  }

  static absl::Status TakeGamma(Call& call, KernelNode& node, double fallback) {
    const CallArgument* argument = call.Take("gamma");
    node.gamma_source = KernelNode::Gamma::kNumber;
    node.gamma = fallback;
    if (argument == nullptr) return absl::OkStatus();
    if (argument->is_number) {
      node.gamma = argument->number;
    } else if (argument->word == "scale") {
      node.gamma_source = KernelNode::Gamma::kScale;
    } else if (argument->word == "median") {
      node.gamma_source = KernelNode::Gamma::kMedian;
    } else {
      return ExpressionError(
          argument->value_column,
          absl::StrCat("gamma is a number, scale or median; got '", argument->word, "'"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<NodePtr> Counted(KernelNode node) {
    if (++nodes_ > kMaxNodes) {
      return ExpressionError(node.column, absl::StrCat("more than ", kMaxNodes, " parts"));
    }
    return std::make_shared<const KernelNode>(std::move(node));
  }

  ExpressionScanner scanner_;
  int nodes_ = 0;
};

}  // namespace

absl::StatusOr<KernelExpression> KernelExpression::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  PHIMAP_ASSIGN_OR_RETURN(NodePtr root, KernelParser(text).Parse());
  return KernelExpression(std::move(root));
}

}  // namespace phimap
