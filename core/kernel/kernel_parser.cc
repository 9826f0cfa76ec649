// The text form of kernel expressions: a recursive descent over
//   sum     = product { "+" product }
//   product = operand { "*" operand }
//   operand = number | call | "(" sum ")" | "exp(" sum ")" | "normalize(" sum ")"
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
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
    const int column = scanner_.column();
    PHIMAP_ASSIGN_OR_RETURN(std::string name, scanner_.Word("a kernel, a number or '('"));
    if (name == "exp") return Function(KernelNode::Kind::kExp, column, depth);
    if (name == "normalize") return Function(KernelNode::Kind::kNormalized, column, depth);
    PHIMAP_ASSIGN_OR_RETURN(Call call, Call::ParseArguments(scanner_, std::move(name), column));
    PHIMAP_ASSIGN_OR_RETURN(NodePtr leaf, Leaf(call));
    const bool strings =
        leaf->kind == KernelNode::Kind::kSpectrum || leaf->kind == KernelNode::Kind::kJaccard;
    const bool constant =
        leaf->kind == KernelNode::Kind::kWeight && leaf->weight == KernelNode::Weight::kConstant;
    PHIMAP_RETURN_IF_ERROR(TakesWhatOthersTake(*leaf, call.name(),
                                               strings    ? Takes::kStrings
                                               : constant ? Takes::kAnything
                                                          : Takes::kNumbers));
    return leaf;
  }

  // A kernel of a kernel, behind its name.
  absl::StatusOr<NodePtr> Function(KernelNode::Kind kind, int column, int depth) {
    PHIMAP_RETURN_IF_ERROR(scanner_.Consume('('));
    PHIMAP_ASSIGN_OR_RETURN(NodePtr inner, Sum(depth + 1));
    PHIMAP_RETURN_IF_ERROR(scanner_.Consume(')'));
    return Counted(KernelNode{.kind = kind, .children = {std::move(inner)}, .column = column});
  }

  absl::StatusOr<NodePtr> Leaf(Call& call) {
    if (call.name() == "linear") return Plain(call, KernelNode::Kind::kLinear);
    if (call.name() == "poly") return Polynomial(call);
    if (call.name() == "sigmoid") return Sigmoid(call);
    if (call.name() == "rbf") return Radial(call, KernelNode::Kind::kRbf);
    if (call.name() == "laplacian") return Radial(call, KernelNode::Kind::kLaplacian);
    if (call.name() == "delta") return Plain(call, KernelNode::Kind::kDelta);
    if (call.name() == "cosine") return Plain(call, KernelNode::Kind::kCosine);
    if (call.name() == "bilinear") return Bilinear(call);
    if (call.name() == "spectrum") return Strings(call, KernelNode::Kind::kSpectrum);
    if (call.name() == "jaccard") return Strings(call, KernelNode::Kind::kJaccard);
    if (call.name() == "weight") return Weight(call);
    if (call.name() == "precomputed" || call.name() == "service") {
      return ExpressionError(call.column(),
                             absl::StrCat(call.name(),
                                          " stands alone: its values are not computed "
                                          "here, and no part of an expression"));
    }
    return ExpressionError(
        call.column(),
        absl::StrCat("unknown kernel '", call.name(),
                     "'; expected linear, poly, sigmoid, rbf, laplacian, delta, cosine, bilinear, "
                     "spectrum, jaccard, weight, exp or normalize"));
  }

  absl::StatusOr<NodePtr> Plain(Call& call, KernelNode::Kind kind) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({}));
    return Counted(KernelNode{.kind = kind, .column = call.column()});
  }

  absl::StatusOr<NodePtr> Strings(Call& call, KernelNode::Kind kind) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"n", "unit"}));
    KernelNode node{.kind = kind, .column = call.column()};
    PHIMAP_ASSIGN_OR_RETURN(const int64_t n, call.TakeInteger("n", 1, kMaxNgram, true, 0));
    node.ngram = static_cast<int32_t>(n);
    constexpr absl::string_view kUnits[] = {"character", "byte", "word"};
    PHIMAP_ASSIGN_OR_RETURN(const int unit, call.TakeWord("unit", kUnits, 0));
    node.unit = static_cast<StringUnit>(unit + 1);
    return Counted(std::move(node));
  }

  // What the leaves of an expression are of: one of the two.
  enum class Takes { kAnything, kNumbers, kStrings };
  absl::Status TakesWhatOthersTake(const KernelNode& node, const std::string& name, Takes takes) {
    if (takes_ == Takes::kAnything) {
      takes_ = takes;
      first_ = name;
    }
    if (takes == takes_ || takes == Takes::kAnything) return absl::OkStatus();
    const bool strings = takes == Takes::kStrings;
    return ExpressionError(
        node.column, absl::StrCat(name, " is of ", strings ? "strings" : "rows of numbers", " and ",
                                  first_, " of ", strings ? "rows of numbers" : "strings",
                                  ": one expression is of one of the two"));
  }

  absl::StatusOr<NodePtr> Sigmoid(Call& call) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"gamma", "coef0"}));
    KernelNode node{.kind = KernelNode::Kind::kSigmoid, .column = call.column()};
    PHIMAP_RETURN_IF_ERROR(TakeGamma(call, node, KernelNode::Gamma::kScale));
    PHIMAP_ASSIGN_OR_RETURN(node.coef0, call.TakeNumber("coef0", 0));
    return Counted(std::move(node));
  }

  absl::StatusOr<NodePtr> Bilinear(Call& call) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"matrix", "diagonal"}));
    const CallArgument* const matrix = call.Take("matrix");
    const CallArgument* const diagonal = call.Take("diagonal");
    if ((matrix == nullptr) == (diagonal == nullptr)) {
      return ExpressionError(call.column(), "bilinear needs matrix=[...] or diagonal=[...]");
    }
    const CallArgument& given = matrix != nullptr ? *matrix : *diagonal;
    const int64_t size = static_cast<int64_t>(given.list.size());
    const int64_t columns = given.list_rows == 0 ? 0 : size / given.list_rows;
    const int64_t expected_rows = matrix != nullptr ? columns : 1;
    if (columns == 0 || given.list_rows != expected_rows) {
      return ExpressionError(
          given.value_column,
          absl::StrCat(
              given.name, " of bilinear is ",
              matrix != nullptr ? "a square list, [a, b; b, c]" : "a list, [a, b]", ", got ",
              columns == 0 ? given.ValueText()
                           : absl::StrCat(given.list_rows, " rows of ", columns, " numbers")));
    }
    auto form = std::make_shared<BilinearForm>(
        BilinearForm{.columns = columns, .diagonal = matrix == nullptr, .numbers = given.list});
    PHIMAP_RETURN_IF_ERROR(CheckSymmetric(given, *form));
    return Counted(KernelNode{
        .kind = KernelNode::Kind::kBilinear, .form = std::move(form), .column = call.column()});
  }

  static absl::Status CheckSymmetric(const CallArgument& given, const BilinearForm& form) {
    if (form.diagonal) return absl::OkStatus();
    for (int64_t i = 0; i < form.columns; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double lower = form.numbers[i * form.columns + j];
        const double upper = form.numbers[j * form.columns + i];
        if (lower == upper) continue;
        return ExpressionError(
            given.value_column,
            absl::StrCat("matrix of bilinear is symmetric, got ", NumberToText(lower), " in row ",
                         i + 1, ", column ", j + 1, " and ", NumberToText(upper), " across"));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<NodePtr> Weight(Call& call) {
    constexpr absl::string_view kParameters[] = {"norm_power", "gaussian", "constant"};
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas(kParameters));
    KernelNode node{.kind = KernelNode::Kind::kWeight, .column = call.column()};
    int given = 0;
    for (int i = 0; i < 3; ++i) {
      if (call.Take(kParameters[i]) == nullptr) continue;
      ++given;
      node.weight = static_cast<KernelNode::Weight>(i);
      PHIMAP_ASSIGN_OR_RETURN(node.weight_parameter, call.TakeNumber(kParameters[i], 0));
    }
    if (given != 1) {
      return ExpressionError(call.column(),
                             "weight needs one of norm_power, gaussian and constant");
    }
    if (node.weight == KernelNode::Weight::kNormPower) {
      PHIMAP_RETURN_IF_ERROR(call.TakeInteger("norm_power", -16, 16, true, 0).status());
    }
    return Counted(std::move(node));
  }

  absl::StatusOr<NodePtr> Polynomial(Call& call) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"degree", "gamma", "coef0"}));
    KernelNode node{.kind = KernelNode::Kind::kPolynomial, .column = call.column()};
    PHIMAP_ASSIGN_OR_RETURN(const int64_t degree,
                            call.TakeInteger("degree", 1, kMaxDegree, true, 0));
    node.degree = static_cast<int>(degree);
    PHIMAP_RETURN_IF_ERROR(TakeGamma(call, node, KernelNode::Gamma::kNumber));
    PHIMAP_ASSIGN_OR_RETURN(node.coef0, call.TakeNumber("coef0", 0));
    return Counted(std::move(node));
  }

  absl::StatusOr<NodePtr> Radial(Call& call, KernelNode::Kind kind) {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"gamma"}));
    KernelNode node{.kind = kind, .column = call.column()};
    PHIMAP_RETURN_IF_ERROR(TakeGamma(call, node, KernelNode::Gamma::kScale));
    if (node.gamma_source == KernelNode::Gamma::kNumber && node.gamma <= 0) {
      return ExpressionError(
          call.Take("gamma")->value_column,
          absl::StrCat("gamma of ", call.name(), " is > 0, got ", NumberToText(node.gamma)));
    }
    return Counted(std::move(node));
  }

  // Absent: 1, or resolved from the data.
  static absl::Status TakeGamma(Call& call, KernelNode& node, KernelNode::Gamma absent) {
    const CallArgument* argument = call.Take("gamma");
    node.gamma_source = argument == nullptr ? absent : KernelNode::Gamma::kNumber;
    node.gamma = 1;
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
          absl::StrCat("gamma is a number, scale or median; got ", argument->ValueText()));
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
  Takes takes_ = Takes::kAnything;
  std::string first_;  // the leaf that says so
};

}  // namespace

absl::StatusOr<KernelExpression> KernelExpression::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  PHIMAP_ASSIGN_OR_RETURN(NodePtr root, KernelParser(text).Parse());
  KernelExpression kernel(std::move(root));
  const absl::Status compiles = KernelProgram::CheckCompiles(kernel);
  if (!compiles.ok()) return ExpressionError(1, compiles.message());
  return kernel;
}

}  // namespace phimap
