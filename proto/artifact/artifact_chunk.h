// The pieces in which an artifact travels: each with its place and its checksum.
#ifndef PHIMAP_PROTO_ARTIFACT_ARTIFACT_CHUNK_H_
#define PHIMAP_PROTO_ARTIFACT_ARTIFACT_CHUNK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// Most bytes of a chunk that are taken.
inline constexpr int64_t kMaxChunkBytes = int64_t{1} << 20;
// Bytes of the chunks that are sent: with its envelope it fits the smallest message limit that a
// server may be given, 64 KiB.
inline constexpr int64_t kSentChunkBytes = 63 << 10;

// Sets the offset, data and checksum of `chunk`; leaves its other fields unchanged.
void FillChunk(int64_t offset_bytes, std::string data, v1::ArtifactChunk& chunk);

// Checks that `chunk` begins at `expected_offset_bytes` and is undamaged. INVALID_ARGUMENT (reasons
// CHUNK_SIZE_OUT_OF_RANGE, CHUNK_OFFSET_MISMATCH), DATA_LOSS (reason CHUNK_CHECKSUM_MISMATCH); the
// field's name begins with "chunk".
absl::Status CheckChunk(const v1::ArtifactChunk& chunk, int64_t expected_offset_bytes);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ARTIFACT_ARTIFACT_CHUNK_H_
