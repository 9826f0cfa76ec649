// The chunks in which an artifact is sent, each with its offset and its checksum.
#ifndef PHIMAP_PROTO_CHUNK_ARTIFACT_CHUNK_H_
#define PHIMAP_PROTO_CHUNK_ARTIFACT_CHUNK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// Maximum size of a chunk that is accepted.
inline constexpr int64_t kMaxChunkBytes = int64_t{1} << 20;
// Size of the chunks that are sent. With its envelope, such a chunk fits the smallest message limit
// that a server can have, 64 KiB.
inline constexpr int64_t kSentChunkBytes = 63 << 10;

// Fills `chunk` with `data`, its offset and its checksum. Leaves other fields as they are.
void FillChunk(int64_t offset_bytes, std::string data, v1::ArtifactChunk& chunk);

// Checks that `chunk` begins at `expected_offset_bytes` and arrived unchanged. Returns
// INVALID_ARGUMENT (reasons CHUNK_SIZE_OUT_OF_RANGE, CHUNK_OFFSET_MISMATCH) or DATA_LOSS (reason
// CHUNK_CHECKSUM_MISMATCH). Errors have the field as a path that begins with "chunk".
absl::Status CheckChunk(const v1::ArtifactChunk& chunk, int64_t expected_offset_bytes);

}  // namespace phimap

#endif  // PHIMAP_PROTO_CHUNK_ARTIFACT_CHUNK_H_
