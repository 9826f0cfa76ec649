#include "proto/artifact/artifact_description.h"

#include "core/certificate/artifact_review.h"
#include "core/digest/sha256.h"
#include "core/plan/artifact.h"
#include "core/status/status_macros.h"
#include "proto/artifact/certificate_to_proto.h"

namespace phimap {
namespace {

constexpr char kFile[] = "FILE";

}  // namespace

static_assert(kArtifactStartBytes == kArtifactHeadBytes);

absl::StatusOr<int64_t> DescribeSize(absl::string_view start) {
  const absl::StatusOr<int64_t> size = ArtifactSizeInHead(start);
  if (!size.ok()) return DamageAsInput(size.status(), kFile);
  return size;
}

absl::StatusOr<v1::Version> DescribeArtifact(absl::string_view bytes, bool& reference_vectors_ran) {
  const absl::StatusOr<ReviewedArtifact> reviewed = ReviewArtifact(bytes);
  if (!reviewed.ok()) return DamageAsInput(reviewed.status(), kFile);
  const ReviewedArtifact& review = *reviewed;
  reference_vectors_ran = review.reference_vectors == ReferenceVectors::kVerified;
  Sha256 hash;
  hash.Update(bytes);
  v1::Version version;
  version.mutable_ref()->set_digest(hash.Hex());
  version.set_artifact_size_bytes(static_cast<int64_t>(bytes.size()));
  version.set_input_columns(static_cast<int>(review.input_columns));
  version.set_output_columns(static_cast<int>(review.output_columns));
  version.set_serving_type(review.serving_type == FloatType::kFloat64 ? v1::SERVING_TYPE_FLOAT64
                                                                      : v1::SERVING_TYPE_FLOAT32);
  version.set_mapping_text(review.provenance.mapping_text);
  version.set_kernel_text(review.provenance.kernel_text);
  version.set_standardize(review.provenance.standardize);
  version.set_seed(review.provenance.seed);
  version.mutable_column_names()->Assign(review.provenance.column_names.begin(),
                                         review.provenance.column_names.end());
  CertificateToProto(review.certificate,
                     {review.input_columns, review.output_columns, review.serving_type,
                      !IsServiceKernel(review.provenance.kernel_text)},
                     version.mutable_certificate());
  return version;
}

}  // namespace phimap
