#include "core/mapping/build_spec.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// In the order of their enums.
constexpr std::array<absl::string_view, 3> kKinds = {"f1", "f2", "f3"};
constexpr std::array<absl::string_view, 4> kProjections = {"gaussian", "sign", "sparse",
                                                           "orthonormal"};
constexpr std::array<absl::string_view, 2> kPolicies = {"uniform", "rpcholesky"};
constexpr std::array<absl::string_view, 2> kServingTypes = {"float32", "float64"};

absl::StatusOr<MappingKind> KindOf(const Call& call) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (call.name() == kKinds[i]) return static_cast<MappingKind>(i);
  }
  return ExpressionError(
      call.column(), absl::StrCat("unknown mapping '", call.name(), "'; expected f1, f2 or f3"));
}

absl::Status OutOfRange(absl::string_view field, absl::string_view what, int64_t low, int64_t high,
                        int64_t actual) {
  return MakeError(absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE", field,
                   absl::StrCat(what, "expected ", low, " to ", high, ", got ", actual),
                   {{"limit", absl::StrCat(high)}, {"actual", absl::StrCat(actual)}});
}

absl::Status NotOffered(absl::string_view field, absl::string_view value,
                        absl::string_view offered) {
  return MakeError(
      absl::StatusCode::kUnimplemented, "NOT_OFFERED", field,
      absl::StrCat("'", value, "' is not offered by this server yet; use '", offered, "'"));
}

}  // namespace

absl::StatusOr<MappingSpec> MappingSpec::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  ExpressionScanner scanner(text);
  PHIMAP_ASSIGN_OR_RETURN(Call call, Call::Parse(scanner, "a mapping: f1, f2 or f3"));
  if (!scanner.AtEnd()) return scanner.Expected("the end");
  MappingSpec spec;
  PHIMAP_ASSIGN_OR_RETURN(spec.kind, KindOf(call));
  PHIMAP_RETURN_IF_ERROR(spec.kind == MappingKind::kF3
                             ? call.OnlyHas({"landmarks", "dimensions", "projection", "policy",
                                             "pool_rows", "serving_type"})
                             : call.OnlyHas({"landmarks", "policy", "pool_rows", "serving_type"}));
  PHIMAP_ASSIGN_OR_RETURN(spec.landmarks, call.TakeInteger("landmarks", 1, kMaxLandmarks, true, 0));
  if (spec.kind == MappingKind::kF3) {
    PHIMAP_ASSIGN_OR_RETURN(spec.dimensions,
                            call.TakeInteger("dimensions", 1, kMaxDimensions, true, 0));
    PHIMAP_ASSIGN_OR_RETURN(const int projection, call.TakeWord("projection", kProjections, 0));
    spec.projection = static_cast<ProjectionKind>(projection);
  }
  PHIMAP_ASSIGN_OR_RETURN(const int policy, call.TakeWord("policy", kPolicies, 0));
  spec.policy = static_cast<LandmarkPolicy>(policy);
  PHIMAP_ASSIGN_OR_RETURN(spec.pool_rows, call.TakeInteger("pool_rows", 1, kMaxPoolRows, false, 0));
  PHIMAP_ASSIGN_OR_RETURN(const int serving, call.TakeWord("serving_type", kServingTypes, -1));
  if (serving >= 0) spec.serving_type = serving == 0 ? FloatType::kFloat32 : FloatType::kFloat64;
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

absl::Status MappingSpec::Validate() const {
  if (landmarks < 1 || landmarks > kMaxLandmarks) {
    return OutOfRange("landmarks", "", 1, kMaxLandmarks, landmarks);
  }
  if (kind != MappingKind::kF3 && dimensions != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, "NOT_APPLICABLE", "dimensions",
                     "only f3 has dimensions; f1 and f2 have one feature for each landmark kept");
  }
  if (kind == MappingKind::kF3 && (dimensions < 1 || dimensions > landmarks)) {
    return OutOfRange("dimensions", "f3 projects to fewer dimensions than landmarks: ", 1,
                      landmarks, dimensions);
  }
  if (projection != ProjectionKind::kGaussian) {
    return NotOffered("projection", kProjections[static_cast<size_t>(projection)], "gaussian");
  }
  if (policy != LandmarkPolicy::kUniform) {
    return NotOffered("policy", kPolicies[static_cast<size_t>(policy)], "uniform");
  }
  if (pool_rows != 0 && (pool_rows < landmarks || pool_rows > kMaxPoolRows)) {
    return OutOfRange("pool_rows", "at least `landmarks`: ", landmarks, kMaxPoolRows, pool_rows);
  }
  return absl::OkStatus();
}

std::string MappingSpec::ToText() const {
  std::string text = absl::StrCat(kKinds[static_cast<size_t>(kind)], "(landmarks=", landmarks);
  if (kind == MappingKind::kF3) {
    absl::StrAppend(&text, ", dimensions=", dimensions,
                    ", projection=", kProjections[static_cast<size_t>(projection)]);
  }
  absl::StrAppend(&text, ", policy=", kPolicies[static_cast<size_t>(policy)]);
  if (pool_rows != 0) absl::StrAppend(&text, ", pool_rows=", pool_rows);
  if (serving_type.has_value()) {
    absl::StrAppend(&text, ", serving_type=", FloatTypeName(*serving_type));
  }
  return absl::StrCat(text, ")");
}

absl::Status BuildSpec::Validate() const {
  PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(mapping.Validate(), "spec."));
  if (mapping.kind == MappingKind::kF1) return absl::OkStatus();
  const absl::Status definite = kernel.CheckPositiveSemidefinite();
  if (definite.ok()) return definite;
  return MakeError(definite.code(), "NOT_POSITIVE_SEMIDEFINITE", "kernel", definite.message(),
                   DetailOf(definite)->metadata);
}

std::string BuildSpec::ToText() const {
  return absl::StrCat(mapping.ToText(), " of ", kernel.ToText(), standardize ? ", standardize" : "",
                      ", seed=", seed);
}

}  // namespace phimap
