#include "proto/chunk/artifact_chunk.h"

#include <string>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

v1::ArtifactChunk Chunk(int64_t offset, std::string data) {
  v1::ArtifactChunk chunk;
  FillChunk(offset, std::move(data), chunk);
  return chunk;
}

void ExpectRefused(const v1::ArtifactChunk& chunk, int64_t offset, StatusCode code,
                   const char* reason, const char* field) {
  EXPECT_THAT(CheckChunk(chunk, offset), IsError(code, reason, field));
}

TEST(ArtifactChunkTest, WhatWasFilledInIsAccepted) {
  EXPECT_TRUE(CheckChunk(Chunk(0, "x"), 0).ok());
  EXPECT_TRUE(CheckChunk(Chunk(4096, std::string(kMaxChunkBytes, '\xff')), 4096).ok());
  // The test vector is in RFC 3720, B.4: 32 bytes of zeros.
  EXPECT_EQ(Chunk(0, std::string(32, '\0')).crc32c(), 0x8a9136aau);
}

TEST(ArtifactChunkTest, WhatIsSentFitsTheSmallestMessage) {
  v1::ArtifactChunk chunk = Chunk(int64_t{4} << 30, std::string(kSentChunkBytes, 'x'));
  chunk.mutable_version()->set_name(std::string(63, 'm'));
  chunk.mutable_version()->set_digest(std::string(64, 'd'));
  chunk.mutable_version()->set_number(int64_t{1} << 40);
  chunk.set_artifact_size_bytes(int64_t{4} << 30);
  EXPECT_LT(chunk.ByteSizeLong(), 64u << 10);
}

TEST(ArtifactChunkTest, OtherSizesPlacesAndBytesAreRefused) {
  using Code = absl::StatusCode;
  ExpectRefused(Chunk(0, ""), 0, Code::kInvalidArgument, "CHUNK_SIZE_OUT_OF_RANGE", "chunk.data");
  ExpectRefused(Chunk(0, std::string(kMaxChunkBytes + 1, 'x')), 0, Code::kInvalidArgument,
                "CHUNK_SIZE_OUT_OF_RANGE", "chunk.data");
  for (const int64_t offset : {int64_t{-1}, int64_t{0}, int64_t{6}, int64_t{1} << 62}) {
    ExpectRefused(Chunk(offset, "data"), 5, Code::kInvalidArgument, "CHUNK_OFFSET_MISMATCH",
                  "chunk.offset_bytes");
  }
  v1::ArtifactChunk changed = Chunk(5, "data");
  (*changed.mutable_data())[2] ^= 1;
  ExpectRefused(changed, 5, Code::kDataLoss, "CHUNK_CHECKSUM_MISMATCH", "chunk.crc32c");
}

}  // namespace
}  // namespace phimap::testing
