#include "proto/artifact/artifact_description.h"

#include <string>

#include "absl/strings/match.h"
#include "core/certificate/artifact_review.h"
#include "core/certificate/verdict.h"
#include "core/digest/sha256.h"
#include "core/plan/artifact.h"
#include "core/status/status_macros.h"
#include "proto/artifact/head_description.h"

namespace phimap {
namespace {

void ErrorToProto(const MeasuredError& error, v1::Certificate::Error* out) {
  out->set_mean(error.mean);
  out->set_max(error.max);
  out->set_scale(error.scale);
  out->set_count(error.count);
}

// Writes the certificate's statements about the kernel error of all pairs.
void PairStatementsToProto(const Certificate& certificate, v1::Certificate* out) {
  if (certificate.kernel_error_half_width) {
    out->mutable_kernel_error()->set_half_width(*certificate.kernel_error_half_width);
  }
  if (const auto& interval = certificate.kernel_error_interval) {
    out->mutable_kernel_error()->set_interval_low(interval->low);
    out->mutable_kernel_error()->set_interval_high(interval->high);
  }
  if (const auto& bound = certificate.kernel_error_bound) {
    v1::Certificate::PairBound& to = *out->mutable_kernel_error()->mutable_pair_bound();
    to.set_pairs(bound->pairs);
    to.set_largest(bound->largest);
    to.set_share(bound->share);
  }
}

void SpectrumToProto(const Spectrum& spectrum, v1::Certificate::Spectrum* out) {
  out->set_rows(spectrum.rows);
  out->set_held_out(spectrum.held_out);
  out->set_trace(spectrum.trace);
  out->set_residual(spectrum.residual);
  out->mutable_eigenvalues()->Add(spectrum.eigenvalues.begin(), spectrum.eigenvalues.end());
  for (const EffectiveDimension& dimension : spectrum.effective_dimensions) {
    v1::Certificate::Spectrum::EffectiveDimension& to = *out->add_effective_dimensions();
    to.set_lambda(dimension.lambda);
    to.set_kernel(dimension.kernel);
    to.set_mapping(dimension.mapping);
  }
}

void SelfCheckToProto(const SelfCheck& check, const VersionShape& shape, v1::SelfCheck* out) {
  v1::DenseRows& rows = *out->mutable_rows();
  rows.set_rows(static_cast<int>(check.rows));
  rows.set_columns(static_cast<int>(shape.input_columns));
  rows.set_float32_le(check.rows_float32_le);
  v1::DenseRows& features = *out->mutable_features();
  features.set_rows(static_cast<int>(check.rows));
  features.set_columns(static_cast<int>(shape.output_columns));
  if (shape.serving_type == FloatType::kFloat64) {
    features.set_float64_le(check.features_le);
  } else {
    features.set_float32_le(check.features_le);
  }
}

void ResidualShareToProto(const ResidualShare& share, v1::Certificate::ResidualShare* out) {
  out->set_median(share.median);
  out->set_quantile_95(share.quantile_95);
  out->set_rows(share.rows);
  out->set_zero_rows(share.zero_rows);
}

void FidelityToProto(const Fidelity& fidelity, v1::Certificate::Fidelity* out) {
  out->set_rows(fidelity.rows);
  for (const SmootherDistance& smoother : fidelity.smoothers) {
    v1::Certificate::Fidelity::Smoother& to = *out->add_smoothers();
    to.set_lambda(smoother.lambda);
    to.set_distance(smoother.distance);
  }
  out->set_gram_error(fidelity.gram_error);
  out->set_centred_gram_error(fidelity.centred_gram_error);
  out->set_self_error_median(fidelity.self_error_median);
  out->set_self_error_quantile_95(fidelity.self_error_quantile_95);
  out->set_distance_error_quantile_95(fidelity.distance_error_quantile_95);
}

v1::Verdict::Grade GradeToProto(Verdict::Grade grade) {
  switch (grade) {
    case Verdict::Grade::kNotJudged:
      return v1::Verdict::GRADE_NOT_JUDGED;
    case Verdict::Grade::kGood:
      return v1::Verdict::GRADE_GOOD;
    case Verdict::Grade::kFair:
      return v1::Verdict::GRADE_FAIR;
    case Verdict::Grade::kPoor:
      return v1::Verdict::GRADE_POOR;
  }
  return v1::Verdict::GRADE_UNSPECIFIED;
}

v1::Verdict::Cause CauseToProto(Verdict::Cause cause) {
  switch (cause) {
    case Verdict::Cause::kNone:
      return v1::Verdict::CAUSE_UNSPECIFIED;
    case Verdict::Cause::kTooFewRows:
      return v1::Verdict::CAUSE_TOO_FEW_ROWS;
    case Verdict::Cause::kNotMeasured:
      return v1::Verdict::CAUSE_NOT_MEASURED;
    case Verdict::Cause::kOtherAim:
      return v1::Verdict::CAUSE_OTHER_AIM;
    case Verdict::Cause::kConstantKernel:
      return v1::Verdict::CAUSE_CONSTANT_KERNEL;
    case Verdict::Cause::kServingType:
      return v1::Verdict::CAUSE_SERVING_TYPE;
    case Verdict::Cause::kFewRowsCarry:
      return v1::Verdict::CAUSE_FEW_ROWS_CARRY;
    case Verdict::Cause::kTooFewFeatures:
      return v1::Verdict::CAUSE_TOO_FEW_FEATURES;
  }
  return v1::Verdict::CAUSE_UNSPECIFIED;
}

// Writes the counts of rows, and what is known of the landmarks' factor.
void FactorToProto(const Certificate& certificate, v1::Certificate* out) {
  out->set_stream_rows(certificate.stream_rows);
  out->set_pool_rows(certificate.pool_rows);
  out->set_held_out_rows(certificate.held_out_rows);
  out->set_landmarks(certificate.landmarks);
  if (certificate.rank) out->set_rank(*certificate.rank);
  if (certificate.tolerance) out->set_tolerance(*certificate.tolerance);
  if (certificate.largest_residual) out->set_largest_residual(*certificate.largest_residual);
  if (certificate.trace_residual) out->set_trace_residual(*certificate.trace_residual);
  if (certificate.held_out_trace_residual) {
    out->set_held_out_trace_residual(*certificate.held_out_trace_residual);
  }
  out->mutable_pivots()->Add(certificate.pivots.begin(), certificate.pivots.end());
  if (certificate.zero_landmarks) out->set_zero_landmarks(*certificate.zero_landmarks);
}

// Writes what was measured of learners, and the verdict that rests on it.
void JudgementToProto(const Certificate& certificate, v1::Certificate* out) {
  if (certificate.fidelity) FidelityToProto(*certificate.fidelity, out->mutable_fidelity());
  if (certificate.left_out_distance) {
    out->set_left_out_distance(*certificate.left_out_distance);
  }
  if (certificate.effective_rows) {
    out->mutable_effective_rows()->set_kernel(certificate.effective_rows->kernel);
    out->mutable_effective_rows()->set_error(certificate.effective_rows->error);
  }
  if (certificate.residual_mass_interval) {
    out->mutable_residual_mass()->set_low(certificate.residual_mass_interval->low);
    out->mutable_residual_mass()->set_high(certificate.residual_mass_interval->high);
  }
  if (certificate.serving_distance) out->set_serving_distance(*certificate.serving_distance);
  if (certificate.kernel_rank) out->set_kernel_rank(*certificate.kernel_rank);
  const Verdict verdict = VerdictOf(certificate);
  out->mutable_verdict()->set_grade(GradeToProto(verdict.grade));
  out->mutable_verdict()->set_cause(CauseToProto(verdict.cause));
  out->mutable_verdict()->set_reason(verdict.reason);
  out->mutable_verdict()->set_advice(verdict.advice);
}

constexpr char kFile[] = "FILE";

}  // namespace

bool IsServiceKernel(absl::string_view kernel_text) {
  return absl::StartsWith(kernel_text, "service(");
}

void CertificateToProto(const Certificate& certificate, const VersionShape& shape,
                        v1::Certificate* out) {
  FactorToProto(certificate, out);
  if (certificate.kernel_error) {
    ErrorToProto(*certificate.kernel_error, out->mutable_kernel_error());
  }
  if (certificate.serving_error) {
    ErrorToProto(*certificate.serving_error, out->mutable_serving_error());
  }
  PairStatementsToProto(certificate, out);
  if (certificate.pool_trace_residual) {
    out->set_pool_trace_residual(*certificate.pool_trace_residual);
  }
  if (certificate.spectrum) SpectrumToProto(*certificate.spectrum, out->mutable_spectrum());
  if (certificate.mean_squared_norm) out->set_mean_squared_norm(*certificate.mean_squared_norm);
  out->set_policy(certificate.policy);
  out->set_theorem(certificate.theorem);
  for (const std::string& warning : certificate.warnings) out->add_warnings(warning);
  out->mutable_landmark_rows()->Add(certificate.landmark_rows.begin(),
                                    certificate.landmark_rows.end());
  if (certificate.residual_share) {
    ResidualShareToProto(*certificate.residual_share, out->mutable_residual_share());
  }
  out->set_theorem_scope(certificate.theorem_scope);
  if (certificate.serving_share) out->set_serving_share(*certificate.serving_share);
  JudgementToProto(certificate, out);
  if (certificate.self_check.has_value() && shape.reference_rows_are_examples) {
    SelfCheckToProto(*certificate.self_check, shape, out->mutable_self_check());
  }
}

static_assert(kArtifactStartBytes == kArtifactHeadBytes);

absl::StatusOr<int64_t> DescribeSize(absl::string_view start) {
  const absl::StatusOr<int64_t> size = ArtifactSizeInHead(start);
  if (!size.ok()) return DamageAsInput(size.status(), kFile);
  return size;
}

void DescribeReviewed(const ReviewedArtifact& review, absl::string_view digest, int64_t bytes,
                      v1::Version& version) {
  version.mutable_ref()->set_digest(std::string(digest));
  version.set_artifact_size_bytes(bytes);
  version.set_input_columns(static_cast<int>(review.input_columns));
  version.set_output_columns(static_cast<int>(review.output_columns));
  version.set_serving_type(review.serving_type == FloatType::kFloat64 ? v1::SERVING_TYPE_FLOAT64
                                                                      : v1::SERVING_TYPE_FLOAT32);
  version.set_spec_text(review.provenance.spec_text);
  version.set_kernel_text(review.provenance.kernel_text);
  version.set_standardize(review.provenance.standardize);
  version.set_seed(review.provenance.seed);
  version.mutable_column_names()->Assign(review.provenance.column_names.begin(),
                                         review.provenance.column_names.end());
  if (review.head != nullptr) HeadToProto(*review.head, version.mutable_head());
  CertificateToProto(review.certificate,
                     {review.input_columns, review.output_columns, review.serving_type,
                      !IsServiceKernel(review.provenance.kernel_text)},
                     version.mutable_certificate());
}

absl::StatusOr<v1::Version> DescribeArtifact(absl::string_view bytes, bool& reference_vectors_ran) {
  const absl::StatusOr<ReviewedArtifact> reviewed = ReviewArtifact(bytes);
  if (!reviewed.ok()) return DamageAsInput(reviewed.status(), kFile);
  reference_vectors_ran = reviewed->reference_vectors == ReferenceVectors::kVerified;
  Sha256 hash;
  hash.Update(bytes);
  v1::Version version;
  DescribeReviewed(*reviewed, hash.Hex(), static_cast<int64_t>(bytes.size()), version);
  return version;
}

}  // namespace phimap
