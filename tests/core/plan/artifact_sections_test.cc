// Optional sections of artifacts: column names, the drift reference, and the head with its
// variance.
#include <string>
#include <utility>
#include <vector>

#include "core/digest/crc32c.h"
#include "core/digest/sha256.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"

namespace phimap::testing {
namespace {

struct Optional {
  bool names = false;
  bool drift = false;
  bool head = false;
  bool variance = false;
};

// All combinations of sections that an artifact may have: no variance comes without a head.
std::vector<Optional> Combinations() {
  std::vector<Optional> all;
  for (int bits = 0; bits < 16; ++bits) {
    const Optional has{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    if (has.head || !has.variance) all.push_back(has);
  }
  return all;
}

Artifact MakeArtifact(const Optional& has) {
  Artifact artifact{.plan = MakePlan({.columns = 3}),
                    .provenance = {.spec_text = "f2(landmarks=7, policy=uniform)",
                                   .kernel_text = "rbf(gamma=0.5)",
                                   .standardize = false,
                                   .seed = 1},
                    .certificate = "any bytes"};
  if (has.names) artifact.provenance.column_names = {"a", "b", "c"};
  if (has.drift) artifact.drift_reference = std::string("other\0bytes", 11);
  if (has.head) artifact.head = std::string("a\0head", 6);
  if (has.variance) artifact.head_variance = std::string(200, 'v');
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
  for (const Optional& has : Combinations()) {
    if (has.head) {
      EXPECT_EQ(ArtifactFormatOf(Encoded(has)), 4u);
    }
  }
}

TEST(ArtifactSectionsTest, EveryCombinationSurvives) {
  for (const Optional& has : Combinations()) {
    const Artifact artifact = MakeArtifact(has);
    const std::string bytes = *EncodeArtifact(artifact);
    const auto size = static_cast<int64_t>(bytes.size());
    EXPECT_EQ(ArtifactSizeInHead(bytes.substr(0, kArtifactHeadBytes)).value_or(-1), size);
    const auto decoded = DecodeArtifact(bytes).value();
    EXPECT_EQ(decoded.provenance.column_names, artifact.provenance.column_names);
    EXPECT_EQ(decoded.drift_reference, artifact.drift_reference);
    EXPECT_EQ(decoded.head, artifact.head);
    EXPECT_EQ(decoded.head_variance, artifact.head_variance);
    EXPECT_EQ(*EncodeArtifact(decoded), bytes);
    const auto facts = ReadArtifactFacts(size, RangeOf(bytes)).value();
    EXPECT_EQ(facts.provenance.column_names, artifact.provenance.column_names);
    EXPECT_EQ(facts.certificate, artifact.certificate);
    EXPECT_EQ(facts.has_drift_reference, has.drift);
    EXPECT_EQ(facts.has_head, has.head);
    EXPECT_EQ(facts.has_head_variance, has.variance);
    EXPECT_EQ(ReadDriftReference(size, RangeOf(bytes)).value_or("?"), artifact.drift_reference);
    EXPECT_EQ(ReadHead(size, RangeOf(bytes)).value_or("?"), artifact.head);
    EXPECT_EQ(ReadHeadVariance(size, RangeOf(bytes)).value_or("?"), artifact.head_variance);
  }
}

TEST(ArtifactSectionsTest, ASectionThatNobodyPaysForIsNotRead) {
  const std::string bytes = Encoded({.drift = true, .head = true, .variance = true});
  int64_t charged = 0;
  const auto nothing_left = [&](int64_t section) {
    charged = section;
    return absl::ResourceExhaustedError("nothing left");
  };
  EXPECT_TRUE(absl::IsResourceExhausted(
      ReadDriftReference(bytes.size(), RangeOf(bytes), nothing_left).status()));
  EXPECT_EQ(charged, 11);
  EXPECT_TRUE(
      absl::IsResourceExhausted(ReadHead(bytes.size(), RangeOf(bytes), nothing_left).status()));
  EXPECT_EQ(charged, 6);
  EXPECT_TRUE(absl::IsResourceExhausted(
      ReadHeadVariance(bytes.size(), RangeOf(bytes), nothing_left).status()));
  EXPECT_EQ(charged, 200);
}

// The bytes must be those that EncodeArtifact writes of the same artifact, with and without a head.
TEST(ArtifactSectionsTest, AHeadIsPutInReplacedAndRemovedWithoutDecodingTheFeatures) {
  for (const Optional& from : Combinations()) {
    for (const Optional& to : Combinations()) {
      if (from.names != to.names || from.drift != to.drift) continue;
      const Artifact expected = MakeArtifact(to);
      EXPECT_EQ(WithHead(Encoded(from), expected.head, expected.head_variance).value_or("?"),
                Encoded(to));
    }
  }
}

TEST(ArtifactSectionsTest, TheDigestOfTheFeaturesIsThatOfTheArtifactWithoutItsHead) {
  for (const Optional& has : Combinations()) {
    Sha256 hash;
    hash.Update(Encoded({.names = has.names, .drift = has.drift}));
    EXPECT_EQ(FeaturesDigest(Encoded(has)).value_or("?"), hash.Hex());
  }
}

TEST(ArtifactSectionsTest, ADamagedSectionStaysDamagedUnderAnotherHead) {
  const std::string good = Encoded({.names = true, .head = true});
  std::string damaged = good;
  damaged[SectionOffset(damaged, 3) + SectionSize(damaged, 3) - 1] ^= 1;
  const std::string other = WithHead(damaged, "another head", "").value();
  EXPECT_THAT(DecodeArtifact(other).status(),
              IsError(StatusCode::kDataLoss, _, _, HasSubstr("4 (projection stage)")));
  EXPECT_NE(FeaturesDigest(damaged).value(), FeaturesDigest(good).value());
  EXPECT_TRUE(absl::IsDataLoss(WithHead(good.substr(0, good.size() - 1), "h", "").status()));
  EXPECT_TRUE(absl::IsDataLoss(FeaturesDigest(good + "x").status()));
}

// A later phimap that writes a further kind must not be misread. Format 3 ends with kind 7.
TEST(ArtifactSectionsTest, AKindThatIsNotKnownYetIsUnimplemented) {
  for (std::string bytes : {Encoded({.drift = true}), Encoded({.head = true})}) {
    const uint32_t first = ArtifactFormatOf(bytes) == 3 ? 8 : 10;
    for (const uint32_t kind : {first, first + 1, 0xffffffffu}) {
      WriteAt<uint32_t>(bytes, 32 + 5 * 24, kind);
      FixHead(bytes);
      EXPECT_THAT(DecodeArtifact(bytes).status(),
                  IsError(StatusCode::kUnimplemented, "FORMAT_UNKNOWN"));
    }
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
  // No head in the format of heads, a head in the format of drift references, and a variance
  // without a head.
  std::string headless = Encoded({.drift = true});
  WriteAt<uint32_t>(headless, 8, 4);
  FixHead(headless);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(headless).status()));
  std::string early = Encoded({.drift = true, .head = true});
  WriteAt<uint32_t>(early, 8, 3);
  FixHead(early);
  EXPECT_FALSE(DecodeArtifact(early).ok());
  std::string varies = Encoded({.drift = true, .head = true});
  WriteAt<uint32_t>(varies, 32 + 6 * 24, 9);
  FixHead(varies);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(varies).status()));
  // Sections that do not rise.
  std::string swapped = Encoded({.names = true, .drift = true});
  WriteAt<uint32_t>(swapped, 32 + 5 * 24, 7);
  WriteAt<uint32_t>(swapped, 32 + 6 * 24, 6);
  FixHead(swapped);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(swapped).status()));
  // More sections than a table may have.
  std::string longer = Encoded({.drift = true});
  WriteAt<uint32_t>(longer, 20, 8);
  FixHead(longer);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(longer).status()));
  std::string longest = Encoded({.head = true});
  WriteAt<uint32_t>(longest, 20, 10);
  FixHead(longest);
  EXPECT_TRUE(absl::IsDataLoss(DecodeArtifact(longest).status()));
}

TEST(ArtifactSectionsTest, EveryFlippedBitIsRefused) {
  const std::string bytes = Encoded({.names = true, .drift = true, .head = true, .variance = true});
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
}  // namespace phimap::testing
