// Optional sections of artifacts: column names and the drift reference.
#include <string>
#include <utility>
#include <vector>

#include "core/plan/artifact.h"
#include "core/plan/byte_codec.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/plans.h"

namespace phimap {
namespace {

using testing::MakePlan;
using testing::ReadAt;
using testing::WriteAt;

struct Optional {
  bool names = false;
  bool drift = false;
};

Artifact MakeArtifact(const Optional& has) {
  Artifact artifact{.plan = MakePlan({.columns = 3}),
                    .provenance = {.mapping_text = "f2(landmarks=7, policy=uniform)",
                                   .kernel_text = "rbf(gamma=0.5)",
                                   .standardize = false,
                                   .seed = 1},
                    .certificate = "any bytes"};
  if (has.names) artifact.provenance.column_names = {"a", "b", "c"};
  if (has.drift) artifact.drift_reference = std::string("other\0bytes", 11);
  return artifact;
}

std::string Encoded(const Optional& has) { return *EncodeArtifact(MakeArtifact(has)); }

// Restores the checksum of a head whose table was changed.
void FixHead(std::string& bytes) {
  const int64_t sections = ReadAt<uint32_t>(bytes, 20);
  WriteAt<uint32_t>(bytes, 28, Crc32c(bytes.substr(0, 28) + bytes.substr(32, sections * 24)));
}

ArtifactRange RangeOf(const std::string& bytes) {
  return [&bytes](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    return bytes.substr(std::min<size_t>(offset, bytes.size()), count);
  };
}

TEST(ArtifactSectionsTest, TheOldestFormatThatCanHoldTheArtifactIsWritten) {
  EXPECT_EQ(ArtifactFormatOf(Encoded({})), 1u);
  EXPECT_EQ(ArtifactFormatOf(Encoded({.names = true})), 2u);
  EXPECT_EQ(ArtifactFormatOf(Encoded({.drift = true})), 3u);
  EXPECT_EQ(ArtifactFormatOf(Encoded({.names = true, .drift = true})), 3u);
}

TEST(ArtifactSectionsTest, EveryCombinationSurvives) {
  for (const bool names : {false, true}) {
    for (const bool drift : {false, true}) {
      const Artifact artifact = MakeArtifact({names, drift});
      const std::string bytes = *EncodeArtifact(artifact);
      const auto size = static_cast<int64_t>(bytes.size());
      EXPECT_EQ(ArtifactSizeInHead(bytes.substr(0, kArtifactHeadBytes)).value_or(-1), size);
      const auto decoded = DecodeArtifact(bytes);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(decoded->provenance.column_names, artifact.provenance.column_names);
      EXPECT_EQ(decoded->drift_reference, artifact.drift_reference);
      EXPECT_EQ(*EncodeArtifact(*decoded), bytes);
      const auto facts = ReadArtifactFacts(size, RangeOf(bytes));
      ASSERT_TRUE(facts.ok()) << facts.status();
      EXPECT_EQ(facts->provenance.column_names, artifact.provenance.column_names);
      EXPECT_EQ(facts->certificate, artifact.certificate);
      EXPECT_EQ(facts->has_drift_reference, drift);
      EXPECT_EQ(ReadDriftReference(size, RangeOf(bytes)).value_or("?"), artifact.drift_reference);
    }
  }
}

TEST(ArtifactSectionsTest, ADriftReferenceThatNobodyPaysForIsNotRead) {
  const std::string bytes = Encoded({.drift = true});
  int64_t charged = 0;
  const auto refused = ReadDriftReference(bytes.size(), RangeOf(bytes), [&](int64_t section) {
    charged = section;
    return absl::ResourceExhaustedError("nothing left");
  });
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(charged, 11);
}

// Kind 8 is reserved for a head. A later phimap that writes one must not be misread.
TEST(ArtifactSectionsTest, AKindThatIsNotKnownYetIsUnimplemented) {
  std::string bytes = Encoded({.drift = true});
  for (const uint32_t kind : {8u, 9u, 0xffffffffu}) {
    WriteAt<uint32_t>(bytes, 32 + 5 * 24, kind);
    FixHead(bytes);
    const absl::Status status = DecodeArtifact(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_EQ(DetailOf(status)->reason, "FORMAT_UNKNOWN");
  }
}

TEST(ArtifactSectionsTest, AnArtifactHasOneForm) {
  // Names, and nothing that needs format 3.
  std::string renamed = Encoded({.names = true});
  WriteAt<uint32_t>(renamed, 8, 3);
  FixHead(renamed);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(renamed).status()));
  // A drift reference in the format of names.
  std::string older = Encoded({.drift = true});
  WriteAt<uint32_t>(older, 8, 2);
  FixHead(older);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(older).status()));
  // Sections that do not rise.
  std::string swapped = Encoded({.names = true, .drift = true});
  WriteAt<uint32_t>(swapped, 32 + 5 * 24, 7);
  WriteAt<uint32_t>(swapped, 32 + 6 * 24, 6);
  FixHead(swapped);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(swapped).status()));
  // More sections than a table may have.
  std::string longer = Encoded({.drift = true});
  WriteAt<uint32_t>(longer, 20, 9);
  FixHead(longer);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(longer).status()));
}

TEST(ArtifactSectionsTest, EveryFlippedBitIsRefused) {
  const std::string bytes = Encoded({.names = true, .drift = true});
  std::string damaged = bytes;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      damaged[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      ASSERT_FALSE(DecodeArtifact(damaged).ok()) << "bit " << bit << " of byte " << at;
    }
    damaged[at] = bytes[at];
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(DecodeArtifact(absl::string_view(bytes).substr(0, length)).ok()) << length;
  }
}

}  // namespace
}  // namespace phimap
