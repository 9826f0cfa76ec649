#include "proto/chunk/artifact_chunk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/digest/crc32c.h"
#include "core/status/error.h"

namespace phimap {

using Code = absl::StatusCode;

void FillChunk(int64_t offset_bytes, std::string data, v1::ArtifactChunk& chunk) {
  chunk.set_offset_bytes(offset_bytes);
  chunk.set_crc32c(Crc32c(data));
  chunk.set_data(std::move(data));
}

absl::Status CheckChunk(const v1::ArtifactChunk& chunk, int64_t expected_offset_bytes) {
  const auto size = static_cast<int64_t>(chunk.data().size());
  if (size < 1 || size > kMaxChunkBytes) {
    return MakeError(Code::kInvalidArgument, reason::kChunkSizeOutOfRange, "chunk.data",
                     absl::StrCat("expected 1..", kMaxChunkBytes, " bytes, got ", size),
                     {{"limit", absl::StrCat(kMaxChunkBytes)}, {"actual", absl::StrCat(size)}});
  }
  if (chunk.offset_bytes() != expected_offset_bytes) {
    return MakeError(Code::kInvalidArgument, reason::kChunkOffsetMismatch, "chunk.offset_bytes",
                     absl::StrCat("chunks must be sent in order: expected the one at byte ",
                                  expected_offset_bytes, ", got ", chunk.offset_bytes()),
                     {{"expected", absl::StrCat(expected_offset_bytes)},
                      {"actual", absl::StrCat(chunk.offset_bytes())}});
  }
  const uint32_t actual = Crc32c(chunk.data());
  if (actual == chunk.crc32c()) return absl::OkStatus();
  return MakeError(Code::kDataLoss, reason::kChunkChecksumMismatch, "chunk.crc32c",
                   absl::StrCat("the chunk at byte ", expected_offset_bytes,
                                " was changed in transit: its checksum is ", actual, ", not ",
                                chunk.crc32c(), "; send the artifact again"),
                   {{"offset", absl::StrCat(expected_offset_bytes)}});
}

}  // namespace phimap
