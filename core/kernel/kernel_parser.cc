// Parses the text form of kernel expressions by recursive descent:
//   sum     = product { "+" product }
//   product = operand { "*" operand }
//   operand = number | call | "(" sum ")" | "exp(" sum ")" | "normalize(" sum ")"
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/leaf_kernel.h"
#include "core/kernel/parameter.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 256;

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

  // Parses a product. Multiplies all its numbers into one factor of the remaining kernel, which may
  // itself be a product of kernels.
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
      return scanner_.Expected("'*' and a kernel (a number alone is not a kernel)");
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
    const int column = scanner_.column();
    PHIMAP_ASSIGN_OR_RETURN(std::string name, scanner_.Word("a kernel, a number or '('"));
    if (name == "exp") return Function(KernelNode::Kind::kExp, column, depth);
    if (name == "normalize") return Function(KernelNode::Kind::kNormalized, column, depth);
    PHIMAP_ASSIGN_OR_RETURN(ParsedCall call,
                            ParsedCall::ParseArguments(scanner_, std::move(name), column));
    return Leaf(call);
  }

  // Parses the argument of exp or normalize; the name has been read.
  absl::StatusOr<NodePtr> Function(KernelNode::Kind kind, int column, int depth) {
    PHIMAP_RETURN_IF_ERROR(scanner_.Consume('('));
    PHIMAP_ASSIGN_OR_RETURN(NodePtr inner, Sum(depth + 1));
    PHIMAP_RETURN_IF_ERROR(scanner_.Consume(')'));
    return Counted(KernelNode{.kind = kind, .children = {std::move(inner)}, .column = column});
  }

  absl::StatusOr<NodePtr> Leaf(const ParsedCall& call) {
    const LeafKernel* const leaf = FindLeafKernel(call.name());
    if (leaf == nullptr) return UnknownKernel(call);
    PHIMAP_ASSIGN_OR_RETURN(ParameterValues values, ParameterValues::Take(call, leaf->parameters));
    if (leaf->check != nullptr) PHIMAP_RETURN_IF_ERROR(leaf->check(call, values));
    PHIMAP_RETURN_IF_ERROR(TakesWhatOthersTake(
        call, leaf->input == nullptr ? KernelDomain::kNumbers : leaf->input(values)));
    return Counted(KernelNode{.leaf = leaf, .values = std::move(values), .column = call.column()});
  }

  static absl::Status UnknownKernel(const ParsedCall& call) {
    if (call.name() == "precomputed" || call.name() == "service") {
      return ExpressionError(
          call.column(),
          absl::StrCat(call.name(),
                       " cannot be part of an expression, because its kernel is remote"));
    }
    std::vector<absl::string_view> names;
    for (const LeafKernel* leaf : LeafKernels()) names.push_back(leaf->name);
    return ExpressionError(call.column(),
                           absl::StrCat("unknown kernel '", call.name(), "'; expected ",
                                        absl::StrJoin(names, ", "), ", exp or normalize"));
  }

  // Rejects a leaf of strings in an expression that has leaves of numbers, and the reverse.
  absl::Status TakesWhatOthersTake(const ParsedCall& call, KernelDomain input) {
    if (input == KernelDomain::kAnything) return absl::OkStatus();
    const bool strings = input != KernelDomain::kNumbers;
    if (!first_.has_value()) first_ = {call.name(), strings};
    if (strings == first_->takes_strings) return absl::OkStatus();
    return ExpressionError(
        call.column(),
        absl::StrCat("cannot mix string and numeric kernels: ", call.name(), " takes ",
                     strings ? "strings" : "rows of numbers", ", but ", first_->name, " takes ",
                     strings ? "rows of numbers" : "strings"));
  }

  absl::StatusOr<NodePtr> Counted(KernelNode node) {
    if (++nodes_ > kMaxNodes) {
      return ExpressionError(node.column, absl::StrCat("more than ", kMaxNodes, " parts"));
    }
    return std::make_shared<const KernelNode>(std::move(node));
  }

  ExpressionScanner scanner_;
  int nodes_ = 0;
  // The first leaf that takes only numbers or only strings.
  struct First {
    std::string name;
    bool takes_strings;
  };
  std::optional<First> first_;
};

}  // namespace

absl::StatusOr<KernelExpression> KernelExpression::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  PHIMAP_ASSIGN_OR_RETURN(NodePtr root, KernelParser(text).Parse());
  KernelExpression kernel(std::move(root));
  const absl::Status compiles = KernelProgram::CheckCompiles(kernel);
  if (!compiles.ok()) {
    // An error about one leaf names the place of the leaf.
    const bool is_placed = DetailOf(compiles)->reason == reason::kExpressionInvalid;
    return is_placed ? compiles : ExpressionError(1, compiles.message());
  }
  return kernel;
}

}  // namespace phimap
