// Describes an artifact as messages, without a server. Servers convert certificates with it too.
#ifndef PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_
#define PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/artifact_review.h"
#include "core/certificate/certificate.h"
#include "core/plan/rows.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// The shape of a version, by which its reference vectors are divided into rows.
struct VersionShape {
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  // Whether the rows of the reference vectors are inputs of Transform. For a remote kernel they are
  // a service's answers, which clients do not send.
  bool reference_rows_are_examples = true;
};

// Returns whether a user's own service computes the kernel with this text.
bool IsServiceKernel(absl::string_view kernel_text);

void CertificateToProto(const Certificate& certificate, const VersionShape& shape,
                        v1::Certificate* out);

// Returns the length of the artifact that begins with `start`, its first kArtifactStartBytes bytes.
// Use it to reject a file that is not an artifact before more of it is read. Returns errors as
// DescribeArtifact does.
inline constexpr size_t kArtifactStartBytes = 248;
absl::StatusOr<int64_t> DescribeSize(absl::string_view start);

// Fills in what is known of an artifact of `bytes` bytes that was reviewed.
void DescribeReviewed(const ReviewedArtifact& review, absl::string_view digest, int64_t bytes,
                      v1::Version& version);

// Returns the version that the artifact would become: digest, size, columns, texts, certificate and
// head, but no name, number or time, which a store assigns. Checks everything that an import
// checks. So the features of the reference vectors, if any, were computed on this machine and match
// bit for bit. Sets `reference_vectors_ran` to false if there are none, or if they cannot be
// compared because this machine has no fused multiply-add. Returns the errors of ReviewArtifact
// (core/certificate/artifact_review.h), except that damage is INVALID_ARGUMENT about the field
// "FILE", as it is for an import's chunks. Throws std::bad_alloc.
absl::StatusOr<v1::Version> DescribeArtifact(absl::string_view bytes, bool& reference_vectors_ran);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_
