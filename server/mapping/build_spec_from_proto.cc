#include "server/mapping/build_spec_from_proto.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/reference.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Fields of v1.BuildSpec stand under "spec" in BuildRequest, those of v1.MappingSpec under
// "spec.spec".
constexpr char kSpecPrefix[] = "spec.";
constexpr char kMappingPrefix[] = "spec.spec.";

bool IsUuid(absl::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? text[i] != '-' : !absl::ascii_isxdigit(text[i])) return false;
  }
  return true;
}

absl::Status BadField(absl::string_view field, absl::string_view message) {
  return MakeError(Code::kInvalidArgument, "BAD_FIELD", field, message);
}

absl::StatusOr<MappingKind> KindFromProto(v1::MappingSpec::Kind kind) {
  switch (kind) {
    case v1::MappingSpec::F1:
      return MappingKind::kF1;
    case v1::MappingSpec::F2:
      return MappingKind::kF2;
    case v1::MappingSpec::F3:
      return MappingKind::kF3;
    case v1::MappingSpec::RANDOM_PROJECTION:
      return MappingKind::kRandomProjection;
    case v1::MappingSpec::FOURIER:
      return MappingKind::kFourier;
    case v1::MappingSpec::KERNEL_PCA:
      return MappingKind::kKernelPca;
    case v1::MappingSpec::MULTICLASS:
      return MappingKind::kMulticlass;
    case v1::MappingSpec::POLYNOMIAL:
      return MappingKind::kPolynomial;
    default:
      return BadField("kind", absl::StrCat("expected one of the kinds, such as F2, or `text`; got ",
                                           static_cast<int>(kind)));
  }
}

absl::StatusOr<ProjectionKind> ProjectionFromProto(v1::MappingSpec::Projection projection) {
  switch (projection) {
    case v1::MappingSpec::PROJECTION_UNSPECIFIED:
    case v1::MappingSpec::GAUSSIAN:
      return ProjectionKind::kGaussian;
    case v1::MappingSpec::SIGN:
      return ProjectionKind::kSign;
    case v1::MappingSpec::SPARSE:
      return ProjectionKind::kSparse;
    case v1::MappingSpec::ORTHONORMAL:
      return ProjectionKind::kOrthonormal;
    default:
      return BadField("projection", absl::StrCat("unknown value ", static_cast<int>(projection)));
  }
}

absl::StatusOr<LandmarkPolicy> PolicyFromProto(v1::MappingSpec::Policy policy) {
  switch (policy) {
    case v1::MappingSpec::POLICY_UNSPECIFIED:
    case v1::MappingSpec::UNIFORM:
      return LandmarkPolicy::kUniform;
    case v1::MappingSpec::RPCHOLESKY:
      return LandmarkPolicy::kRandomlyPivotedCholesky;
    case v1::MappingSpec::GIVEN:
      return LandmarkPolicy::kGiven;
    default:
      return BadField("policy", absl::StrCat("unknown value ", static_cast<int>(policy)));
  }
}

absl::StatusOr<FourierForm> FormFromProto(v1::MappingSpec::FourierForm form) {
  switch (form) {
    case v1::MappingSpec::FOURIER_FORM_UNSPECIFIED:
    case v1::MappingSpec::SINCOS:
      return FourierForm::kSinCos;
    case v1::MappingSpec::PHASE:
      return FourierForm::kPhase;
    default:
      return BadField("form", absl::StrCat("unknown value ", static_cast<int>(form)));
  }
}

absl::StatusOr<std::optional<FloatType>> ServingTypeFromProto(v1::ServingType type) {
  switch (type) {
    case v1::SERVING_TYPE_UNSPECIFIED:
      return std::optional<FloatType>();
    case v1::SERVING_TYPE_FLOAT32:
      return std::optional<FloatType>(FloatType::kFloat32);
    case v1::SERVING_TYPE_FLOAT64:
      return std::optional<FloatType>(FloatType::kFloat64);
    default:
      return BadField("serving_type", absl::StrCat("unknown value ", static_cast<int>(type)));
  }
}

absl::Status CheckOnlyText(const v1::MappingSpec& spec) {
  v1::MappingSpec text_alone;
  text_alone.set_text(spec.text());
  if (spec.SerializeAsString() == text_alone.SerializeAsString()) return absl::OkStatus();
  return BadField("text", "expected either `text` or the other fields, got both");
}

// A default that is given where it does not apply is an error too: who gives it expects something.
absl::Status CheckGiven(const MappingSpec& spec, absl::string_view parameter, bool given) {
  if (!given || spec.Has(parameter)) return absl::OkStatus();
  return BadField(parameter, absl::StrCat(MappingKindName(spec.kind), " has no ", parameter));
}

absl::StatusOr<MappingSpec> FromFields(const v1::MappingSpec& fields) {
  MappingSpec spec;
  PHIMAP_ASSIGN_OR_RETURN(spec.kind, KindFromProto(fields.kind()));
  PHIMAP_ASSIGN_OR_RETURN(spec.projection, ProjectionFromProto(fields.projection()));
  PHIMAP_ASSIGN_OR_RETURN(spec.policy, PolicyFromProto(fields.policy()));
  PHIMAP_ASSIGN_OR_RETURN(spec.form, FormFromProto(fields.form()));
  PHIMAP_ASSIGN_OR_RETURN(spec.serving_type, ServingTypeFromProto(fields.serving_type()));
  PHIMAP_RETURN_IF_ERROR(CheckGiven(spec, "projection", fields.projection() != 0));
  PHIMAP_RETURN_IF_ERROR(CheckGiven(spec, "policy", fields.policy() != 0));
  PHIMAP_RETURN_IF_ERROR(CheckGiven(spec, "form", fields.form() != 0));
  PHIMAP_RETURN_IF_ERROR(CheckGiven(spec, "centred", fields.has_centred()));
  PHIMAP_RETURN_IF_ERROR(CheckGiven(spec, "sparsify", fields.has_sparsify()));
  if (fields.has_centred()) spec.centred = fields.centred();
  if (fields.has_sparsify()) spec.sparsify = fields.sparsify();
  spec.orthogonal = fields.orthogonal();
  spec.quantise = fields.quantise();
  spec.rounding = fields.rounding();
  spec.input_dimensions = fields.input_dimensions();
  spec.landmarks = fields.landmarks();
  spec.dimensions = fields.dimensions();
  spec.classes = fields.classes();
  spec.pool_rows = fields.pool_rows();
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

absl::StatusOr<MappingSpec> MappingFromProto(const v1::MappingSpec& fields) {
  if (fields.text().empty()) return FromFields(fields);
  PHIMAP_RETURN_IF_ERROR(CheckOnlyText(fields));
  absl::StatusOr<MappingSpec> parsed = MappingSpec::Parse(fields.text());
  const std::optional<ErrorDetail> detail = DetailOf(parsed.status());
  // A parser knows its text and not the field that brought it.
  if (!detail.has_value() || !detail->field.empty()) return parsed;
  return MakeError(parsed.status().code(), detail->reason, "text", parsed.status().message(),
                   detail->metadata);
}

// A parser knows its text and not the field that brought it.
absl::Status InKernelField(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || !detail->field.empty()) return status;
  return MakeError(status.code(), detail->reason, "kernel", status.message(), detail->metadata);
}

absl::StatusOr<KernelExpression> KernelFromProto(const std::string& text, MappingKind mapping) {
  const bool linear =
      mapping == MappingKind::kRandomProjection || mapping == MappingKind::kMulticlass;
  if (text.empty() && linear) return KernelExpression();
  if (text.empty()) return BadField("kernel", "expected a kernel such as rbf(gamma=scale)");
  absl::StatusOr<KernelExpression> parsed = KernelExpression::Parse(text);
  if (!parsed.ok()) return InKernelField(parsed.status());
  return parsed;
}

}  // namespace

absl::StatusOr<BuildId> BuildIdFromProto(absl::string_view mapping, absl::string_view build_id,
                                         absl::string_view prefix) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(mapping, absl::StrCat(prefix, "mapping")));
  if (!IsUuid(build_id)) {
    return BadField(absl::StrCat(prefix, "build_id"),
                    "expected a UUID, 8-4-4-4-12 hexadecimal digits");
  }
  return BuildId{std::string(mapping), absl::AsciiStrToLower(build_id)};
}

absl::StatusOr<BuildSpec> BuildSpecFromProto(const v1::BuildSpec& fields) {
  BuildSpec spec;
  absl::StatusOr<MappingSpec> mapping = MappingFromProto(fields.spec());
  if (!mapping.ok()) return WithFieldPrefix(mapping.status(), kMappingPrefix);
  spec.mapping = *std::move(mapping);
  absl::StatusOr<std::optional<OutsideKernel>> outside = OutsideKernel::Parse(fields.kernel());
  if (!outside.ok()) return WithFieldPrefix(InKernelField(outside.status()), kSpecPrefix);
  spec.outside = *std::move(outside);
  if (!spec.outside.has_value()) {
    absl::StatusOr<KernelExpression> kernel = KernelFromProto(fields.kernel(), spec.mapping.kind);
    if (!kernel.ok()) return WithFieldPrefix(kernel.status(), kSpecPrefix);
    spec.kernel = *std::move(kernel);
  }
  spec.standardize = fields.standardize();
  spec.seed = fields.seed();
  spec.column_names.assign(fields.column_names().begin(), fields.column_names().end());
  if (absl::Status valid = spec.Validate(); !valid.ok()) {
    return WithFieldPrefix(valid, kSpecPrefix);
  }
  return spec;
}

}  // namespace phimap
