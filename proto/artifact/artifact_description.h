// Describes an artifact without a server.
#ifndef PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_
#define PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// Returns the length of the artifact that begins with `start`, its first kArtifactStartBytes bytes.
// Use it to reject a file that is not an artifact before more of it is read. Returns errors as
// DescribeArtifact does.
inline constexpr size_t kArtifactStartBytes = 224;
absl::StatusOr<int64_t> DescribeSize(absl::string_view start);

// Returns the version that the artifact would become: digest, size, columns, texts and certificate,
// but no name, number or time, which a store assigns. Checks everything that an import checks. So
// the features of the reference vectors, if any, were computed on this machine and match bit for
// bit. Sets `reference_vectors_ran` to false if there are none, or if they cannot be compared
// because this machine has no fused multiply-add. Returns the errors of ReviewArtifact
// (core/certificate/artifact_review.h), except that damage is INVALID_ARGUMENT about the field
// "FILE", as it is for an import's chunks. Throws std::bad_alloc.
absl::StatusOr<v1::Version> DescribeArtifact(absl::string_view bytes, bool& reference_vectors_ran);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_
