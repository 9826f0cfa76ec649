#include "core/kernel/kernel_expression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/leaf/gamma_parameter.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Node = KernelNode;
using NodePtr = std::shared_ptr<const KernelNode>;

std::string ToText(const Node& node);

// Returns the text of an operand of a product or of a factor. The text has parentheses unless the
// operand is a leaf or a function. A sum needs them to keep its meaning. A product or a scaled
// kernel needs them to be read back as the same tree.
std::string Operand(const Node& node) {
  const bool closed = node.kind == Node::Kind::kLeaf || node.kind == Node::Kind::kExp ||
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
    case Node::Kind::kLeaf:
      return absl::StrCat(node.leaf->name, "(", node.values.ToText(), ")");
    case Node::Kind::kExp:
      return absl::StrCat("exp(", ToText(*node.children[0]), ")");
    case Node::Kind::kNormalized:
      return absl::StrCat("normalize(", ToText(*node.children[0]), ")");
    case Node::Kind::kScaled:
      // A product under a factor needs no parentheses: the parser collects the numbers of a product
      // into one factor, so c*K1*K2 reads back as c*(K1*K2). The text is therefore never nested
      // deeper than the text that was parsed.
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

using Is = absl::FunctionRef<bool(const Node&)>;

bool AnyLeaf(const Node& node, Is is) {
  if (node.kind == Node::Kind::kLeaf) return is(node);
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](const NodePtr& child) { return AnyLeaf(*child, is); });
}

// Returns the first leaf for which `is` holds, or null.
const Node* FindLeaf(const Node& node, Is is) {
  const Node* found = nullptr;
  AnyLeaf(node, [&](const Node& leaf) {
    if (is(leaf)) found = &leaf;
    return found != nullptr;
  });
  return found;
}

bool EveryLeaf(const Node& node, Is is) {
  return !AnyLeaf(node, [&](const Node& leaf) { return !is(leaf); });
}

bool AnyNumberIs(const Node& node, absl::string_view word) {
  return AnyLeaf(node, [&](const Node& leaf) { return leaf.values.AnyNumberIs(word); });
}

KernelDomain InputOf(const Node& leaf) {
  return leaf.leaf->input == nullptr ? KernelDomain::kNumbers : leaf.leaf->input(leaf.values);
}

NodePtr Resolve(const NodePtr& node, absl::string_view word, double number) {
  auto copy = std::make_shared<Node>(*node);
  copy->values.Resolve(word, number);
  for (NodePtr& child : copy->children) child = Resolve(child, word, number);
  return copy;
}

absl::Status NotPsd(const Node& node, absl::string_view why) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kKernelNotPositiveSemidefinite, "",
      absl::StrCat("column ", node.column, ": ", why,
                   "; F2, F3, kernel PCA and policy=rpcholesky need a positive "
                   "semidefinite kernel, but F1 with any other policy accepts every kernel"),
      {{"column", absl::StrCat(node.column)}});
}

absl::Status CheckPsd(const Node& node) {
  if (node.kind == Node::Kind::kLeaf && node.leaf->why_indefinite != nullptr) {
    const std::string why = node.leaf->why_indefinite(node.values);
    if (!why.empty()) return NotPsd(node, why);
  }
  if (node.kind == Node::Kind::kScaled && node.factor < 0) {
    return NotPsd(node, absl::StrCat("negative factor ", NumberToText(node.factor),
                                     ": the result may not be positive semidefinite; expected a "
                                     "factor >= 0"));
  }
  for (const NodePtr& child : node.children) PHIMAP_RETURN_IF_ERROR(CheckPsd(*child));
  return absl::OkStatus();
}

absl::Status CheckColumnsOf(const Node& node, int64_t columns) {
  if (node.kind == Node::Kind::kLeaf && node.leaf->check_columns != nullptr) {
    const std::optional<WrongColumns> wrong = node.leaf->check_columns(node.values, columns);
    if (wrong.has_value()) {
      return MakeError(
          absl::StatusCode::kInvalidArgument, reason::kColumnsMismatch, "kernel",
          absl::StrCat("column ", node.column, ": ", wrong->text, ", but these rows have ",
                       columns),
          {{"expected", absl::StrCat(wrong->expected)}, {"actual", absl::StrCat(columns)}});
    }
  }
  for (const NodePtr& child : node.children) {
    PHIMAP_RETURN_IF_ERROR(CheckColumnsOf(*child, columns));
  }
  return absl::OkStatus();
}

}  // namespace

KernelExpression::KernelExpression() : root_(std::make_shared<const KernelNode>()) {}

KernelExpression::KernelExpression(NodePtr root) : root_(std::move(root)) {}

std::string KernelExpression::ToText() const { return phimap::ToText(*root_); }

bool KernelExpression::NeedsScale() const { return AnyNumberIs(*root_, kScaleWord); }

bool KernelExpression::NeedsMedian() const { return AnyNumberIs(*root_, kMedianWord); }

KernelExpression KernelExpression::Resolved(double scale_gamma, double median_gamma) const {
  const auto is_gamma = [](double gamma) { return std::isfinite(gamma) && gamma > 0; };
  PHIMAP_CHECK(!NeedsScale() || is_gamma(scale_gamma));
  PHIMAP_CHECK(!NeedsMedian() || is_gamma(median_gamma));
  return KernelExpression(
      Resolve(Resolve(root_, kScaleWord, scale_gamma), kMedianWord, median_gamma));
}

bool KernelExpression::IsTranslationInvariant() const {
  return EveryLeaf(*root_, [](const Node& node) { return node.leaf->is_translation_invariant; });
}

bool KernelExpression::JumpsAtEqualRows() const {
  return AnyLeaf(*root_, [](const Node& node) { return node.leaf->jumps_at_equal_rows; });
}

bool KernelExpression::SurvivesProjection() const {
  return EveryLeaf(*root_, [](const Node& node) {
    return node.leaf->survives_projection != nullptr && node.leaf->survives_projection(node.values);
  });
}

const KernelNode* KernelExpression::NeedsNonnegative(int64_t column) const {
  return FindLeaf(*root_, [&](const Node& node) {
    const auto needs = node.leaf->needs_nonnegative;
    return needs != nullptr && needs(node.values, column);
  });
}

const KernelNode* KernelExpression::NeedsNonnegative() const {
  return FindLeaf(*root_, [](const Node& node) { return node.leaf->needs_nonnegative != nullptr; });
}

const KernelNode* KernelExpression::ScaledLeaf(double* factor) const {
  double product = 1;
  const Node* node = root_.get();
  for (; node->kind == Node::Kind::kScaled; node = node->children[0].get()) {
    product *= node->factor;
  }
  if (node->kind != Node::Kind::kLeaf) return nullptr;
  *factor = product;
  return node;
}

bool KernelExpression::IsScaledLinear(double* factor) const {
  double product = 1;
  const Node* const node = ScaledLeaf(&product);
  if (node == nullptr || !node->leaf->is_inner_product) return false;
  if (!node->leaf->affine_power(node->values).has_value()) return false;
  *factor = product;
  return true;
}

bool KernelExpression::TakesStrings() const {
  return AnyLeaf(*root_, [](const Node& leaf) {
    return InputOf(leaf) == KernelDomain::kText || InputOf(leaf) == KernelDomain::kTextOrBytes;
  });
}

bool KernelExpression::TakesBytes() const {
  return TakesStrings() &&
         !AnyLeaf(*root_, [](const Node& leaf) { return InputOf(leaf) == KernelDomain::kText; });
}

KernelExpression KernelExpression::Over(
    std::shared_ptr<const std::vector<std::string>> strings) const {
  KernelExpression kernel = *this;
  kernel.strings_ = std::move(strings);
  return kernel;
}

absl::Status KernelExpression::CheckPositiveSemidefinite() const { return CheckPsd(*root_); }

bool KernelExpression::IsProvenPositiveSemidefinite() const {
  return CheckPsd(*root_).ok() &&
         !AnyLeaf(*root_, [](const Node& node) { return node.leaf->is_definiteness_unknown; });
}

absl::Status KernelExpression::CheckColumns(int64_t columns) const {
  return CheckColumnsOf(*root_, columns);
}

}  // namespace phimap
