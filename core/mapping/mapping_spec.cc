#include "core/mapping/mapping_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/kernel/call_syntax.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Names = absl::Span<const absl::string_view>;

// In the order of their enums.
constexpr std::array<absl::string_view, 8> kKinds = {
    "f1", "f2", "f3", "random_projection", "fourier", "kpca", "multiclass", "polynomial"};
constexpr std::array<absl::string_view, 4> kProjections = {"gaussian", "sign", "sparse",
                                                           "orthonormal"};
constexpr std::array<absl::string_view, 3> kPolicies = {"uniform", "rpcholesky", "given"};
constexpr std::array<absl::string_view, 2> kForms = {"phase", "sincos"};
constexpr std::array<absl::string_view, 2> kBooleans = {"false", "true"};
constexpr std::array<absl::string_view, 2> kServingTypes = {"float32", "float64"};

// The parameters of each kind, in the order of its text.
constexpr absl::string_view kOfF1AndF2[] = {"landmarks", "input_dimensions", "policy", "pool_rows",
                                            "serving_type"};
constexpr absl::string_view kOfF3[] = {"landmarks", "dimensions", "projection",  "input_dimensions",
                                       "policy",    "pool_rows",  "serving_type"};
constexpr absl::string_view kOfRandomProjection[] = {"dimensions", "projection", "serving_type"};
constexpr absl::string_view kOfFourier[] = {"dimensions", "form", "orthogonal", "pool_rows",
                                            "serving_type"};

constexpr absl::string_view kOfKernelPca[] = {
    "landmarks", "dimensions",       "centred", "sparsify",  "quantise",
    "rounding",  "input_dimensions", "policy",  "pool_rows", "serving_type"};

constexpr absl::string_view kOfMulticlass[] = {"classes", "dimensions", "projection",
                                               "serving_type"};

constexpr absl::string_view kOfPolynomial[] = {"dimensions", "pool_rows", "serving_type"};

Names ParametersOf(MappingKind kind) {
  switch (kind) {
    case MappingKind::kF1:
    case MappingKind::kF2:
      return kOfF1AndF2;
    case MappingKind::kF3:
      return kOfF3;
    case MappingKind::kRandomProjection:
      return kOfRandomProjection;
    case MappingKind::kFourier:
      return kOfFourier;
    case MappingKind::kKernelPca:
      return kOfKernelPca;
    case MappingKind::kMulticlass:
      return kOfMulticlass;
    case MappingKind::kPolynomial:
      return kOfPolynomial;
  }
  return {};
}

// "f1, f2 or f3"
std::string AnyOf(Names names) {
  return absl::StrCat(absl::StrJoin(names.first(names.size() - 1), ", "), " or ", names.back());
}

absl::StatusOr<MappingKind> KindOf(const Call& call) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (call.name() == kKinds[i]) return static_cast<MappingKind>(i);
  }
  return ExpressionError(
      call.column(), absl::StrCat("unknown mapping '", call.name(), "'; expected ", AnyOf(kKinds)));
}

// A word of `words` as the enum whose order they are in.
template <typename Enum>
absl::Status TakeEnum(const Call& call, absl::string_view name, Names words, Enum& out) {
  PHIMAP_ASSIGN_OR_RETURN(const int index, call.TakeWord(name, words, static_cast<int>(out)));
  out = static_cast<Enum>(index);
  return absl::OkStatus();
}

absl::Status TakeServingType(const Call& call, std::optional<FloatType>& out) {
  PHIMAP_ASSIGN_OR_RETURN(const int index, call.TakeWord("serving_type", kServingTypes, -1));
  if (index >= 0) out = index == 0 ? FloatType::kFloat32 : FloatType::kFloat64;
  return absl::OkStatus();
}

absl::Status TakeParameter(const Call& call, absl::string_view name, MappingSpec& spec) {
  if (name == "projection") return TakeEnum(call, name, kProjections, spec.projection);
  if (name == "policy") return TakeEnum(call, name, kPolicies, spec.policy);
  if (name == "form") return TakeEnum(call, name, kForms, spec.form);
  if (name == "orthogonal") return TakeEnum(call, name, kBooleans, spec.orthogonal);
  if (name == "centred") return TakeEnum(call, name, kBooleans, spec.centred);
  if (name == "quantise") return TakeEnum(call, name, kBooleans, spec.quantise);
  if (name == "serving_type") return TakeServingType(call, spec.serving_type);
  if (name == "sparsify" || name == "rounding") {
    double& out = name == "sparsify" ? spec.sparsify : spec.rounding;
    PHIMAP_ASSIGN_OR_RETURN(out, call.TakeNumber(name, out));
    return absl::OkStatus();
  }
  const bool required = name == "landmarks" || name == "dimensions" || name == "classes";
  int64_t& out = name == "landmarks"          ? spec.landmarks
                 : name == "classes"          ? spec.classes
                 : name == "dimensions"       ? spec.dimensions
                 : name == "input_dimensions" ? spec.input_dimensions
                                              : spec.pool_rows;
  const int64_t high = name == "landmarks"   ? kMaxLandmarks
                       : name == "pool_rows" ? kMaxPoolRows
                                             : kMaxDimensions;
  PHIMAP_ASSIGN_OR_RETURN(out, call.TakeInteger(name, 1, high, required, 0));
  return absl::OkStatus();
}

// "landmarks=500", or "" for a parameter that is left open.
std::string ParameterText(absl::string_view name, const MappingSpec& spec) {
  if (name == "landmarks") return absl::StrCat(name, "=", spec.landmarks);
  if (name == "dimensions") return absl::StrCat(name, "=", spec.dimensions);
  if (name == "classes") return absl::StrCat(name, "=", spec.classes);
  if (name == "projection") {
    return absl::StrCat(name, "=", kProjections[static_cast<size_t>(spec.projection)]);
  }
  if (name == "policy") return absl::StrCat(name, "=", kPolicies[static_cast<size_t>(spec.policy)]);
  if (name == "form") return absl::StrCat(name, "=", kForms[static_cast<size_t>(spec.form)]);
  if (name == "orthogonal") return absl::StrCat(name, "=", kBooleans[spec.orthogonal ? 1 : 0]);
  if (name == "centred") return absl::StrCat(name, "=", kBooleans[spec.centred ? 1 : 0]);
  if (name == "sparsify") {
    return spec.sparsify == 1 ? "" : absl::StrCat(name, "=", NumberToText(spec.sparsify));
  }
  if (name == "quantise") return spec.quantise ? absl::StrCat(name, "=true") : "";
  if (name == "rounding") {
    return spec.rounding == 0 ? "" : absl::StrCat(name, "=", NumberToText(spec.rounding));
  }
  if (name == "pool_rows" || name == "input_dimensions") {
    const int64_t value = name == "pool_rows" ? spec.pool_rows : spec.input_dimensions;
    return value == 0 ? "" : absl::StrCat(name, "=", value);
  }
  return spec.serving_type.has_value() ? absl::StrCat(name, "=", FloatTypeName(*spec.serving_type))
                                       : "";
}

absl::Status OutOfRange(absl::string_view field, absl::string_view what, int64_t low, int64_t high,
                        int64_t actual) {
  return MakeError(absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE", field,
                   absl::StrCat(what, "expected ", low, " to ", high, ", got ", actual),
                   {{"limit", absl::StrCat(high)}, {"actual", absl::StrCat(actual)}});
}

// Of numbers that are not whole; `expected` ends where the limit follows.
absl::Status OutOfRange(absl::string_view field, absl::string_view expected, double high,
                        double actual) {
  return MakeError(absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE", field,
                   absl::StrCat(expected, high, ", got ", actual),
                   {{"limit", absl::StrCat(high)}, {"actual", absl::StrCat(actual)}});
}

absl::Status NotApplicable(const MappingSpec& spec, absl::string_view field,
                           absl::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NOT_APPLICABLE", field,
                   absl::StrCat(MappingKindName(spec.kind), why));
}

// What is set but is no parameter of the mapping: text cannot say it, an API can.
absl::Status CheckApplicable(const MappingSpec& spec) {
  if (!spec.Has("landmarks") && spec.landmarks != 0) {
    return NotApplicable(spec, "landmarks", " has no landmarks");
  }
  if (!spec.Has("dimensions") && spec.dimensions != 0) {
    return NotApplicable(spec, "dimensions",
                         " has no dimensions: it has one feature for each landmark kept");
  }
  if (!spec.Has("classes") && spec.classes != 0) {
    return NotApplicable(spec, "classes", " is the same for any number of classes");
  }
  if (!spec.Has("projection") && spec.projection != ProjectionKind::kGaussian) {
    return NotApplicable(spec, "projection", " has no projection");
  }
  if (!spec.Has("form") && (spec.form != FourierForm::kSinCos || spec.orthogonal)) {
    return NotApplicable(spec, spec.orthogonal ? "orthogonal" : "form", " has no frequencies");
  }
  if (!spec.Has("centred") && !spec.centred) {
    return NotApplicable(spec, "centred", " has no axes that go through a mean");
  }
  if (!spec.Has("sparsify") && (spec.sparsify != 1 || spec.quantise)) {
    return NotApplicable(spec, spec.quantise ? "quantise" : "sparsify",
                         " iterates no Gram matrix that could be randomized");
  }
  if (!spec.Has("rounding") && spec.rounding != 0) {
    return NotApplicable(spec, "rounding", " has no expansions that could be rounded");
  }
  if (!spec.Has("input_dimensions") && spec.input_dimensions != 0) {
    return NotApplicable(spec, "input_dimensions", " evaluates no kernel");
  }
  if (!spec.Has("policy") && spec.policy != LandmarkPolicy::kUniform) {
    return NotApplicable(spec, "policy", " has no landmarks that a policy could choose");
  }
  if (!spec.Has("pool_rows") && spec.pool_rows != 0) {
    return NotApplicable(spec, "pool_rows", " draws nothing from a pool");
  }
  return absl::OkStatus();
}

absl::Status CheckPool(const MappingSpec& spec) {
  const int64_t low = std::max<int64_t>(1, spec.landmarks);
  if (spec.pool_rows == 0 || (spec.pool_rows >= low && spec.pool_rows <= kMaxPoolRows)) {
    return absl::OkStatus();
  }
  return OutOfRange("pool_rows", spec.has_landmarks() ? "at least `landmarks`: " : "", low,
                    kMaxPoolRows, spec.pool_rows);
}

absl::Status CheckLandmarks(const MappingSpec& spec) {
  if (spec.landmarks < 1 || spec.landmarks > kMaxLandmarks) {
    return OutOfRange("landmarks", "", 1, kMaxLandmarks, spec.landmarks);
  }
  return absl::OkStatus();
}

absl::Status CheckMulticlass(const MappingSpec& spec) {
  if (spec.classes < 2 || spec.classes > kMaxClasses) {
    return OutOfRange("classes", "", 2, kMaxClasses, spec.classes);
  }
  const int64_t most = kMaxDimensions / spec.classes;
  if (spec.dimensions >= 1 && spec.dimensions <= most) return absl::OkStatus();
  return OutOfRange(
      "dimensions",
      absl::StrCat("of each of ", spec.classes, " classes, ", kMaxDimensions, " together: "), 1,
      most, spec.dimensions);
}

absl::Status CheckKernelPca(const MappingSpec& spec) {
  if (spec.dimensions < 1 || spec.dimensions > spec.landmarks) {
    return OutOfRange("dimensions", "no more components than landmarks: ", 1, spec.landmarks,
                      spec.dimensions);
  }
  if (!(spec.sparsify >= 1 && spec.sparsify <= kMaxSparsify)) {
    return OutOfRange("sparsify", "one entry in so many is kept: expected 1 to ", kMaxSparsify,
                      spec.sparsify);
  }
  if (!(spec.rounding >= 0 && spec.rounding <= kMaxRounding)) {
    return OutOfRange("rounding", "expected 0, or a scale of at most ", kMaxRounding,
                      spec.rounding);
  }
  return absl::OkStatus();
}

absl::Status CheckF3(const MappingSpec& spec) {
  if (spec.dimensions < 1 || spec.dimensions > spec.landmarks) {
    return OutOfRange("dimensions", "f3 projects to fewer dimensions than landmarks: ", 1,
                      spec.landmarks, spec.dimensions);
  }
  if (spec.projection == ProjectionKind::kGaussian || spec.projection == ProjectionKind::kSign) {
    return absl::OkStatus();
  }
  return NotApplicable(spec, "projection",
                       " projects with gaussian or sign entries: folded into the landmarks' "
                       "weights others cost the same");
}

}  // namespace

absl::string_view MappingKindName(MappingKind kind) { return kKinds[static_cast<size_t>(kind)]; }

absl::string_view ProjectionKindName(ProjectionKind kind) {
  return kProjections[static_cast<size_t>(kind)];
}

absl::string_view LandmarkPolicyName(LandmarkPolicy policy) {
  return kPolicies[static_cast<size_t>(policy)];
}

bool MappingSpec::Has(absl::string_view parameter) const {
  const Names names = ParametersOf(kind);
  return std::find(names.begin(), names.end(), parameter) != names.end();
}

absl::StatusOr<MappingSpec> MappingSpec::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  ExpressionScanner scanner(text);
  PHIMAP_ASSIGN_OR_RETURN(Call call,
                          Call::Parse(scanner, absl::StrCat("a mapping: ", AnyOf(kKinds))));
  if (!scanner.AtEnd()) return scanner.Expected("the end");
  MappingSpec spec;
  PHIMAP_ASSIGN_OR_RETURN(spec.kind, KindOf(call));
  const Names names = ParametersOf(spec.kind);
  PHIMAP_RETURN_IF_ERROR(call.OnlyHas(names));
  for (const absl::string_view name : names) {
    PHIMAP_RETURN_IF_ERROR(TakeParameter(call, name, spec));
  }
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

absl::Status MappingSpec::Validate() const {
  PHIMAP_RETURN_IF_ERROR(CheckApplicable(*this));
  if (has_landmarks()) PHIMAP_RETURN_IF_ERROR(CheckLandmarks(*this));
  if (input_dimensions < 0 || input_dimensions > kMaxDimensions) {
    return OutOfRange("input_dimensions", "", 0, kMaxDimensions, input_dimensions);
  }
  PHIMAP_RETURN_IF_ERROR(CheckPool(*this));
  if (kind == MappingKind::kF3) return CheckF3(*this);
  if (kind == MappingKind::kKernelPca) return CheckKernelPca(*this);
  if (kind == MappingKind::kMulticlass) return CheckMulticlass(*this);
  if (Has("dimensions") && (dimensions < 1 || dimensions > kMaxDimensions)) {
    return OutOfRange("dimensions", "", 1, kMaxDimensions, dimensions);
  }
  if (kind == MappingKind::kFourier && form == FourierForm::kSinCos && dimensions % 2 != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, "ODD_DIMENSIONS", "dimensions",
                     absl::StrCat("form=sincos has a cosine and a sine of each frequency: expected "
                                  "an even number, got ",
                                  dimensions));
  }
  return absl::OkStatus();
}

std::string MappingSpec::ToText() const {
  std::vector<std::string> parameters;
  for (const absl::string_view name : ParametersOf(kind)) {
    std::string text = ParameterText(name, *this);
    if (!text.empty()) parameters.push_back(std::move(text));
  }
  return absl::StrCat(MappingKindName(kind), "(", absl::StrJoin(parameters, ", "), ")");
}

}  // namespace phimap
