#include "core/kernel/kernel_expression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/kernel/call_syntax.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Node = KernelNode;
using NodePtr = std::shared_ptr<const KernelNode>;

std::string GammaText(const Node& node) {
  switch (node.gamma_source) {
    case Node::Gamma::kScale:
      return "scale";
    case Node::Gamma::kMedian:
      return "median";
    case Node::Gamma::kNumber:
      break;
  }
  return NumberToText(node.gamma);
}

std::string FormText(const BilinearForm& form) {
  std::string text = form.diagonal ? "bilinear(diagonal=[" : "bilinear(matrix=[";
  for (size_t i = 0; i < form.numbers.size(); ++i) {
    const bool new_row = !form.diagonal && static_cast<int64_t>(i) % form.columns == 0;
    if (i > 0) absl::StrAppend(&text, new_row ? "; " : ", ");
    absl::StrAppend(&text, NumberToText(form.numbers[i]));
  }
  return text + "])";
}

std::string WeightText(const Node& node) {
  constexpr const char* kNames[] = {"norm_power", "gaussian", "constant"};
  return absl::StrCat("weight(", kNames[static_cast<int>(node.weight)], "=",
                      NumberToText(node.weight_parameter), ")");
}

std::string ToText(const Node& node);

// A sum inside a product or under a factor needs parentheses; a product or a factor inside a
// product, to read back as the same tree.
std::string Operand(const Node& node) {
  const bool closed = node.children.empty() || node.kind == Node::Kind::kExp ||
                      node.kind == Node::Kind::kNormalized;
  return closed ? ToText(node) : absl::StrCat("(", ToText(node), ")");
}

std::string Joined(const Node& node, absl::string_view separator) {
  return absl::StrJoin(node.children, separator, [&](std::string* out, const NodePtr& child) {
    const bool plain = node.kind == Node::Kind::kSum && child->kind != Node::Kind::kSum;
    absl::StrAppend(out, plain ? ToText(*child) : Operand(*child));
  });
}

std::string ToText(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kLinear:
      return "linear()";
    case Node::Kind::kPolynomial:
      return absl::StrCat("poly(degree=", node.degree, ", gamma=", GammaText(node),
                          ", coef0=", NumberToText(node.coef0), ")");
    case Node::Kind::kSigmoid:
      return absl::StrCat("sigmoid(gamma=", GammaText(node), ", coef0=", NumberToText(node.coef0),
                          ")");
    case Node::Kind::kRbf:
      return absl::StrCat("rbf(gamma=", GammaText(node), ")");
    case Node::Kind::kLaplacian:
      return absl::StrCat("laplacian(gamma=", GammaText(node), ")");
    case Node::Kind::kDelta:
      return "delta()";
    case Node::Kind::kCosine:
      return "cosine()";
    case Node::Kind::kBilinear:
      return FormText(*node.form);
    case Node::Kind::kSpectrum:
    case Node::Kind::kJaccard:
      return absl::StrCat(node.kind == Node::Kind::kSpectrum ? "spectrum" : "jaccard",
                          "(n=", node.ngram, ", unit=", StringUnitName(node.unit), ")");
    case Node::Kind::kWeight:
      return WeightText(node);
    case Node::Kind::kExp:
      return absl::StrCat("exp(", ToText(*node.children[0]), ")");
    case Node::Kind::kNormalized:
      return absl::StrCat("normalize(", ToText(*node.children[0]), ")");
    case Node::Kind::kScaled:
      // A product needs none under a factor: numbers of a product collect into one factor, so that
      // c*K1*K2 reads back as c*(K1*K2). So the text is never nested deeper than the one that was
      // parsed.
      return absl::StrCat(NumberToText(node.factor), "*",
                          node.children[0]->kind == Node::Kind::kProduct
                              ? ToText(*node.children[0])
                              : Operand(*node.children[0]));
    case Node::Kind::kSum:
      return Joined(node, " + ");
    case Node::Kind::kProduct:
      return Joined(node, "*");
  }
  PHIMAP_CHECK(false);
}

bool AnyGamma(const Node& node, Node::Gamma source) {
  if (node.children.empty()) {
    return node.gamma_source == source;
  }
  for (const NodePtr& child : node.children) {
    if (AnyGamma(*child, source)) return true;
  }
  return false;
}

NodePtr Resolve(const NodePtr& node, double scale_gamma, double median_gamma) {
  auto copy = std::make_shared<Node>(*node);
  if (copy->gamma_source != Node::Gamma::kNumber) {
    copy->gamma = copy->gamma_source == Node::Gamma::kScale ? scale_gamma : median_gamma;
    PHIMAP_CHECK(std::isfinite(copy->gamma) && copy->gamma > 0);
    copy->gamma_source = Node::Gamma::kNumber;
  }
  for (NodePtr& child : copy->children) child = Resolve(child, scale_gamma, median_gamma);
  return copy;
}

bool AllDistances(const Node& node) {
  if (node.children.empty()) {
    return node.kind == Node::Kind::kRbf || node.kind == Node::Kind::kLaplacian ||
           node.kind == Node::Kind::kDelta;
  }
  for (const NodePtr& child : node.children) {
    if (!AllDistances(*child)) return false;
  }
  return true;
}

absl::Status NotPsd(const Node& node, absl::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NOT_POSITIVE_SEMIDEFINITE", "",
                   absl::StrCat("column ", node.column, ": ", why,
                                "; F2, F3, kernel PCA and policy=rpcholesky need a positive "
                                "semidefinite kernel, F1 of other policies takes any"),
                   {{"column", absl::StrCat(node.column)}});
}

absl::Status CheckPsd(const Node& node) {
  // (−γxᵀy)^q of an even q is (γxᵀy)^q.
  const bool even = node.coef0 == 0 && node.degree % 2 == 0;
  if (node.kind == Node::Kind::kPolynomial && node.gamma < 0 && !even) {
    return NotPsd(node, absl::StrCat("poly with gamma=", NumberToText(node.gamma),
                                     " is not positive semidefinite; expected gamma >= 0"));
  }
  if (node.kind == Node::Kind::kPolynomial && node.coef0 < 0) {
    return NotPsd(node, absl::StrCat("poly with coef0=", NumberToText(node.coef0),
                                     " is not positive semidefinite; expected coef0 >= 0"));
  }
  if (node.kind == Node::Kind::kScaled && node.factor < 0) {
    return NotPsd(node, absl::StrCat("factor ", NumberToText(node.factor),
                                     " subtracts a kernel, and what is left is not known to be "
                                     "positive semidefinite; expected a factor >= 0"));
  }
  if (node.kind == Node::Kind::kBilinear) {
    const absl::Status definite = node.form->CheckPositiveSemidefinite();
    if (!definite.ok()) {
      return NotPsd(node, absl::StrCat("the matrix of bilinear is not positive semidefinite: ",
                                       definite.message()));
    }
  }
  for (const NodePtr& child : node.children) PHIMAP_RETURN_IF_ERROR(CheckPsd(*child));
  return absl::OkStatus();
}

template <typename Is>
bool AnyLeaf(const Node& node, const Is& is) {
  if (node.children.empty()) return is(node);
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](const NodePtr& child) { return AnyLeaf(*child, is); });
}

bool IsOfStrings(const Node& node) {
  return node.kind == Node::Kind::kSpectrum || node.kind == Node::Kind::kJaccard;
}

bool Any(Node::Kind kind, const Node& node) {
  if (node.kind == kind) return true;
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](const NodePtr& child) { return Any(kind, *child); });
}

absl::Status CheckForms(const Node& node, int64_t columns) {
  if (node.kind == Node::Kind::kBilinear && node.form->columns != columns) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "WRONG_COLUMNS", "kernel",
        absl::StrCat("column ", node.column, ": the matrix of bilinear is for rows of ",
                     node.form->columns, " numbers, these have ", columns),
        {{"expected", absl::StrCat(node.form->columns)}, {"actual", absl::StrCat(columns)}});
  }
  for (const NodePtr& child : node.children) PHIMAP_RETURN_IF_ERROR(CheckForms(*child, columns));
  return absl::OkStatus();
}

}  // namespace

KernelExpression::KernelExpression() : root_(std::make_shared<const KernelNode>()) {}

KernelExpression::KernelExpression(NodePtr root) : root_(std::move(root)) {}

std::string KernelExpression::ToText() const { return phimap::ToText(*root_); }

bool KernelExpression::NeedsScale() const { return AnyGamma(*root_, Node::Gamma::kScale); }

bool KernelExpression::NeedsMedian() const { return AnyGamma(*root_, Node::Gamma::kMedian); }

KernelExpression KernelExpression::Resolved(double scale_gamma, double median_gamma) const {
  return KernelExpression(Resolve(root_, scale_gamma, median_gamma));
}

bool KernelExpression::IsTranslationInvariant() const { return AllDistances(*root_); }

bool KernelExpression::HasDelta() const { return Any(Node::Kind::kDelta, *root_); }

bool KernelExpression::IsScaledLinear(double* factor) const {
  double product = 1;
  const Node* node = root_.get();
  for (; node->kind == Node::Kind::kScaled; node = node->children[0].get()) {
    product *= node->factor;
  }
  if (node->kind != Node::Kind::kLinear) return false;
  *factor = product;
  return true;
}

bool KernelExpression::TakesStrings() const {
  return AnyLeaf(*root_, [](const Node& leaf) { return IsOfStrings(leaf); });
}

bool KernelExpression::TakesBytes() const {
  return TakesStrings() && !AnyLeaf(*root_, [](const Node& leaf) {
           return IsOfStrings(leaf) && leaf.unit != StringUnit::kByte;
         });
}

KernelExpression KernelExpression::Over(
    std::shared_ptr<const std::vector<std::string>> strings) const {
  KernelExpression kernel = *this;
  kernel.strings_ = std::move(strings);
  return kernel;
}

absl::Status KernelExpression::CheckPositiveSemidefinite() const { return CheckPsd(*root_); }

bool KernelExpression::IsProvenPositiveSemidefinite() const {
  return CheckPsd(*root_).ok() && !Any(Node::Kind::kSigmoid, *root_);
}

absl::Status KernelExpression::CheckColumns(int64_t columns) const {
  return CheckForms(*root_, columns);
}

}  // namespace phimap
