// What an artifact says of itself, without any server.
#ifndef PHIMAP_EXCHANGE_ARTIFACT_DESCRIPTION_H_
#define PHIMAP_EXCHANGE_ARTIFACT_DESCRIPTION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// The version that the artifact would become: digest, size, columns, texts and certificate; no
// name, number or time, which a store gives. Everything that an import checks is checked, so the
// golden vectors, if there are any, have their bits here. `golden_vectors_ran` becomes false when
// there are none, or when this machine's bits are of another class. Errors: those of ReviewArtifact
// (core/certificate/artifact_review.h). Throws std::bad_alloc.
absl::StatusOr<v1::Version> DescribeArtifact(absl::string_view bytes, bool& golden_vectors_ran);

}  // namespace phimap

#endif  // PHIMAP_EXCHANGE_ARTIFACT_DESCRIPTION_H_
