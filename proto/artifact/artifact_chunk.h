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

// Makes `chunk` that of `data` at this place; leaves its other fields as they are.
void FillChunk(int64_t offset_bytes, std::string data, v1::ArtifactChunk& chunk);

// Whether `chunk` is the one that begins at `expected_offset_bytes` and came as it was sent.
// INVALID_ARGUMENT (reasons CHUNK_SIZE_OUT_OF_RANGE, CHUNK_OFFSET_MISMATCH), DATA_LOSS (reason
// CHUNK_CHECKSUM_MISMATCH); the field is named from "chunk" on.
absl::Status CheckChunk(const v1::ArtifactChunk& chunk, int64_t expected_offset_bytes);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ARTIFACT_ARTIFACT_CHUNK_H_
