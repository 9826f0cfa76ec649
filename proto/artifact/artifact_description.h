// An artifact's description of itself, read without a server.
#ifndef PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_
#define PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// Number of leading bytes that state the length of an artifact, so that other data are refused
// before more is read.
inline constexpr size_t kArtifactStartBytes = 176;
absl::StatusOr<int64_t> DescribeSize(absl::string_view start);

// The version that the artifact would become: digest, size, columns, texts and certificate; no
// name, number or time, which a store gives. Everything that an import checks is checked, so the
// reference vectors, if there are any, have their bits here. `reference_vectors_ran` becomes false
// when there are none, or when this machine's bits are of another class. Errors: those of
// ReviewArtifact (core/certificate/artifact_review.h), except that damage is INVALID_ARGUMENT about
// the field "FILE", as in an import's chunks. Throws std::bad_alloc.
absl::StatusOr<v1::Version> DescribeArtifact(absl::string_view bytes, bool& reference_vectors_ran);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ARTIFACT_ARTIFACT_DESCRIPTION_H_
