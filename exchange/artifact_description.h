// What an artifact says of itself, without any server.
#ifndef PHIMAP_EXCHANGE_ARTIFACT_DESCRIPTION_H_
#define PHIMAP_EXCHANGE_ARTIFACT_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// How long the artifact is that begins with these bytes, kArtifactStartBytes of them: what is none
// is known before more is read. Errors: those of DescribeArtifact.
inline constexpr size_t kArtifactStartBytes = 176;
absl::StatusOr<int64_t> DescribeSize(absl::string_view start);

// The version that the artifact would become: digest, size, columns, texts and certificate; no
// name, number or time, which a store gives. Everything that an import checks is checked, so the
// golden vectors, if there are any, have their bits here. `golden_vectors_ran` becomes false when
// there are none, or when this machine's bits are of another class. Errors: those of ReviewArtifact
// (core/certificate/artifact_review.h), but that what is damaged is INVALID_ARGUMENT about the
// field "FILE", as an import says it of its chunks. Throws std::bad_alloc.
absl::StatusOr<v1::Version> DescribeArtifact(absl::string_view bytes, bool& golden_vectors_ran);

}  // namespace phimap

#endif  // PHIMAP_EXCHANGE_ARTIFACT_DESCRIPTION_H_
