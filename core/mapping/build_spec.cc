#include "core/mapping/build_spec.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/certificate/readable_text.h"
#include "core/landmark/split.h"
#include "core/mapping/fourier_mapping.h"
#include "core/mapping/polynomial_mapping.h"
#include "core/plan/column_names.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status CheckDefinite(const KernelExpression& kernel) {
  const absl::Status definite = kernel.CheckPositiveSemidefinite();
  if (definite.ok()) return definite;
  return MakeError(definite.code(), "NOT_POSITIVE_SEMIDEFINITE", "kernel", definite.message(),
                   DetailOf(definite)->metadata);
}

absl::Status NotApplicable(const MappingSpec& mapping, const KernelExpression& kernel,
                           absl::string_view expected) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE", "kernel",
      absl::StrCat(MappingKindName(mapping.kind), " ", expected, ", got ", kernel.ToText()));
}

absl::Status CheckLinear(const BuildSpec& spec) {
  double factor = 0;
  if (spec.kernel.IsScaledLinear(&factor) && factor > 0) return absl::OkStatus();
  return NotApplicable(spec.mapping, spec.kernel,
                       "maps the inputs themselves: expected linear(), or c*linear() with c > 0");
}

// Whether a kernel is one of distances and inner products, and so of what a projection keeps.
bool SurvivesProjection(const KernelNode& node) {
  switch (node.kind) {
    case KernelNode::Kind::kLaplacian:
    case KernelNode::Kind::kDelta:
    case KernelNode::Kind::kBilinear:
    case KernelNode::Kind::kSpectrum:
    case KernelNode::Kind::kJaccard:
      return false;
    default:
      return std::all_of(node.children.begin(), node.children.end(),
                         [](const auto& child) { return SurvivesProjection(*child); });
  }
}

absl::Status CheckProjected(const BuildSpec& spec) {
  if (spec.mapping.input_dimensions == 0 || SurvivesProjection(spec.kernel.root())) {
    return absl::OkStatus();
  }
  return NotApplicable(spec.mapping, spec.kernel,
                       "with input_dimensions is of kernels of Euclidean distances and inner "
                       "products, not of laplacian, delta, bilinear or strings");
}

absl::Status CheckPolynomial(const BuildSpec& spec) {
  if (PolynomialKernelOf(spec.kernel).has_value()) return absl::OkStatus();
  return NotApplicable(
      spec.mapping, spec.kernel,
      "is of linear() or poly() with gamma > 0, or c > 0 times one: expected that");
}

absl::Status CheckMonomials(const BuildSpec& spec, int64_t columns) {
  const std::optional<int64_t> count = PolynomialKernelOf(spec.kernel)->Monomials(columns);
  if (count.has_value() && *count <= spec.mapping.dimensions) return absl::OkStatus();
  const std::string actual = count.has_value() ? absl::StrCat(*count) : "over 65536";
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "TOO_MANY_DIMENSIONS", "spec.dimensions",
      absl::StrCat("the exact map of ", spec.kernel.ToText(), " on ", columns, " columns has ",
                   actual, " monomials, more than dimensions=", spec.mapping.dimensions,
                   "; allow more, or take f2 with as many landmarks as you can"),
      {{"limit", absl::StrCat(spec.mapping.dimensions)}, {"actual", actual}});
}

absl::Status CheckFourier(const BuildSpec& spec) {
  const std::optional<FourierKernel> kernel = FourierKernelOf(spec.kernel);
  if (!kernel.has_value()) {
    return NotApplicable(spec.mapping, spec.kernel,
                         "is of rbf() or laplacian(), or c > 0 times one: expected that");
  }
  if (spec.mapping.orthogonal && kernel->laplacian) {
    return NotApplicable(spec.mapping, spec.kernel,
                         "has orthogonal frequencies of rbf() alone, because those of a laplacian "
                         "are no multiples of a direction that is uniform: expected c*rbf(), or "
                         "orthogonal=false");
  }
  return absl::OkStatus();
}

absl::Status NotOutside(const BuildSpec& spec, absl::string_view field, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE", field,
                   absl::StrCat("not with ", spec.KernelText(),
                                ", whose values are not computed "
                                "here: ",
                                what));
}

absl::Status CheckOutside(const BuildSpec& spec) {
  if (!spec.mapping.has_landmarks()) {
    return NotOutside(spec, "kernel",
                      absl::StrCat(MappingKindName(spec.mapping.kind),
                                   " has no landmarks; expected f1, f2, f3 or kpca"));
  }
  if (spec.standardize) {
    return NotOutside(spec, "standardize", "it is of examples as they come");
  }
  if (spec.mapping.policy == LandmarkPolicy::kRandomlyPivotedCholesky) {
    return NotOutside(
        spec, "spec.policy",
        "rpcholesky asks for the kernel of the whole pool; expected uniform or given");
  }
  if (spec.mapping.input_dimensions > 0) {
    return NotOutside(spec, "spec.input_dimensions", "nothing is projected before it");
  }
  if (spec.mapping.sparsify != 1 || spec.mapping.quantise) {
    return NotOutside(spec, spec.mapping.quantise ? "spec.quantise" : "spec.sparsify",
                      "a Gram matrix that has been paid for is used as it is");
  }
  return absl::OkStatus();
}

// ", columns=[…]", each name after its length: so no two lists share a text.
std::string NamesText(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return absl::StrCat(", columns=[",
                      absl::StrJoin(names, ", ",
                                    [](std::string* out, const std::string& name) {
                                      absl::StrAppend(out, name.size(), ":", name);
                                    }),
                      "]");
}

absl::Status NoNames(const BuildSpec& spec, absl::string_view what) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "BAD_COLUMN_NAMES", "column_names",
      absl::StrCat("expected none, because ", what, ", got ", spec.column_names.size()),
      {{"expected", "0"}, {"actual", absl::StrCat(spec.column_names.size())}});
}

absl::Status CheckNames(const BuildSpec& spec) {
  if (spec.column_names.empty()) return absl::OkStatus();
  if (spec.is_precomputed()) return NoNames(spec, "the rows are kernel values");
  PHIMAP_RETURN_IF_ERROR(CheckColumnNames(spec.column_names));
  for (size_t i = 0; i < spec.column_names.size(); ++i) {
    const std::string& name = spec.column_names[i];
    if (IsReadableText(name) && !absl::StrContains(name, '\n')) continue;
    return MakeError(absl::StatusCode::kInvalidArgument, "BAD_COLUMN_NAMES",
                     absl::StrCat("column_names[", i, "]"),
                     absl::StrCat("expected UTF-8 without control characters, got ", Quoted(name)));
  }
  return absl::OkStatus();
}

absl::Status CheckNamesOfColumns(const BuildSpec& spec, int64_t columns) {
  const auto names = static_cast<int64_t>(spec.column_names.size());
  if (names == 0 || names == columns) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, "BAD_COLUMN_NAMES", "column_names",
                   absl::StrCat("expected ", columns,
                                " names, one for each column that came, or none, got ", names),
                   {{"expected", absl::StrCat(columns)}, {"actual", absl::StrCat(names)}});
}

}  // namespace

absl::Status BuildSpec::Validate() const {
  PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(mapping.Validate(), "spec."));
  PHIMAP_RETURN_IF_ERROR(CheckNames(*this));
  if (outside.has_value()) return CheckOutside(*this);
  if (standardize && kernel.TakesStrings()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE", "standardize",
        absl::StrCat(kernel.ToText(), " is a kernel of strings, which have no columns"));
  }
  PHIMAP_RETURN_IF_ERROR(CheckProjected(*this));
  switch (mapping.kind) {
    case MappingKind::kF1:
      return mapping.policy == LandmarkPolicy::kRandomlyPivotedCholesky ? CheckDefinite(kernel)
                                                                        : absl::OkStatus();
    case MappingKind::kF2:
    case MappingKind::kF3:
    case MappingKind::kKernelPca:
      return CheckDefinite(kernel);
    case MappingKind::kRandomProjection:
    case MappingKind::kMulticlass:
      return CheckLinear(*this);
    case MappingKind::kFourier:
      return CheckFourier(*this);
    case MappingKind::kPolynomial:
      return CheckPolynomial(*this);
  }
  return absl::OkStatus();
}

absl::Status BuildSpec::CheckColumns(int64_t columns) const {
  PHIMAP_RETURN_IF_ERROR(kernel.CheckColumns(columns));
  if (mapping.kind == MappingKind::kPolynomial) return CheckMonomials(*this, columns);
  if (mapping.Has("projection") && mapping.projection == ProjectionKind::kOrthonormal &&
      mapping.dimensions > columns) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "TOO_MANY_DIMENSIONS", "spec.dimensions",
        absl::StrCat("no more than ", columns, " rows of ", columns,
                     " columns can be orthonormal, got ", mapping.dimensions,
                     "; ask for fewer dimensions or another projection"),
        {{"limit", absl::StrCat(columns)}, {"actual", absl::StrCat(mapping.dimensions)}});
  }
  return absl::OkStatus();
}

absl::Status BuildSpec::CheckExamples(ExampleKind kind, int64_t columns) const {
  if (!column_names.empty() && IsString(kind)) return NoNames(*this, "strings have no columns");
  PHIMAP_RETURN_IF_ERROR(CheckNamesOfColumns(*this, columns));
  if (outside.has_value() && !is_precomputed()) {
    // What the service makes of them is its own affair.
    return IsString(kind) ? absl::OkStatus() : CheckColumns(columns);
  }
  if (is_precomputed() && kind != ExampleKind::kDense) {
    return MakeError(absl::StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE", "kernel",
                     absl::StrCat(outside->ToText(), " is of dense rows; the stream is of ",
                                  ExampleKindName(kind), " ones"));
  }
  const auto not_applicable = [&](absl::string_view of) {
    return MakeError(absl::StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE", "kernel",
                     absl::StrCat(kernel.ToText(), " is a kernel of ", of,
                                  "; the stream's examples are ", ExampleKindName(kind)));
  };
  if (!IsString(kind)) {
    return kernel.TakesStrings() ? not_applicable("strings") : CheckColumns(columns);
  }
  if (!kernel.TakesStrings()) return not_applicable("rows of numbers");
  if (kind == ExampleKind::kBytes && !kernel.TakesBytes()) {
    return not_applicable("text (of bytes it is with unit=byte)");
  }
  // Places in the sample are numbers of float32 too.
  constexpr int64_t kMaxPlaces = int64_t{1} << 24;
  const int64_t places = ReservoirCapacity(PoolRows(1)) + mapping.landmarks;
  if (places <= kMaxPlaces) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE", "pool_rows",
                   absl::StrCat("a pool of strings has at most ", kMaxPlaces,
                                " with held-out ones and landmarks, got ", places),
                   {{"limit", absl::StrCat(kMaxPlaces)}, {"actual", absl::StrCat(places)}});
}

int64_t BuildSpec::PoolRows(int64_t columns) const {
  if (!mapping.has_landmarks() && !kernel.NeedsMedian()) return 0;
  if (mapping.pool_rows != 0) return mapping.pool_rows;
  const int64_t landmarks = std::max<int64_t>(1, mapping.landmarks);
  const int64_t rows = DefaultPoolRows(landmarks, columns);
  if (mapping.policy != LandmarkPolicy::kRandomlyPivotedCholesky) return rows;
  return std::max(landmarks, std::min(rows, kMaxDefaultFactorBytes / 8 / landmarks));
}

std::string BuildSpec::ToText() const {
  return absl::StrCat(mapping.ToText(), " of ", KernelText(), standardize ? ", standardize" : "",
                      ", seed=", seed, NamesText(column_names));
}

}  // namespace phimap
