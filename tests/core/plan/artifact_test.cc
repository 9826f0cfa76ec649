#include "core/plan/artifact.h"

#include <string>
#include <utility>
#include <vector>

#include "core/digest/crc32c.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

Artifact MakeArtifact(Plan plan) {
  return {.plan = std::move(plan),
          .provenance = {.spec_text = "f2(landmarks=7, policy=uniform)",
                         .kernel_text = "rbf(gamma=0.5)",
                         .standardize = true,
                         .seed = 0xfedcba9876543210},
          .certificate = std::string("any\0bytes", 9)};
}

TEST(ArtifactTest, TheHeadStatesTheSize) {
  for (const WKind w : {WKind::kNone, WKind::kTriangular, WKind::kSparse}) {
    const std::string bytes = *EncodeArtifact(MakeArtifact(MakePlan({.w = w})));
    EXPECT_EQ(ArtifactSizeInHead(bytes).value_or(-1), bytes.size());
    const absl::string_view head = absl::string_view(bytes).substr(0, kArtifactHeadBytes);
    EXPECT_EQ(ArtifactSizeInHead(head).value_or(-1), bytes.size());
    EXPECT_FALSE(ArtifactSizeInHead(head.substr(1)).ok());
    EXPECT_FALSE(ArtifactSizeInHead(head.substr(0, kArtifactHeadBytes - 1)).ok());
    // The first section begins before the head's end. Its bytes are not checked here.
    std::string other(head);
    for (uint64_t at = 0; at < ReadAt<uint64_t>(bytes, 32 + 8); ++at) {
      other[at] ^= 1;
      EXPECT_FALSE(ArtifactSizeInHead(other).ok()) << at;
      other[at] ^= 1;
    }
  }
}

// Returns a range function over `bytes` that adds the number of bytes it reads to `read`.
ArtifactRange RangeOf(absl::string_view bytes, int64_t& read) {
  return [bytes, &read](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    const std::string part(bytes.substr(std::min<size_t>(offset, bytes.size()), count));
    read += static_cast<int64_t>(part.size());
    return part;
  };
}

TEST(ArtifactTest, FactsAreReadWithoutThePlan) {
  const Artifact artifact = MakeArtifact(MakePlan({.columns = 300, .feature_count = 400}));
  const std::string bytes = *EncodeArtifact(artifact);
  ASSERT_GT(bytes.size(), 300 * 400 * 4);
  int64_t read = 0;
  int64_t charged = 0;
  const auto facts =
      ReadArtifactFacts(bytes.size(), RangeOf(bytes, read), [&charged](int64_t sections) {
        charged = sections;
        return absl::OkStatus();
      });
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->certificate, artifact.certificate);
  EXPECT_EQ(facts->provenance.spec_text, artifact.provenance.spec_text);
  EXPECT_EQ(facts->provenance.kernel_text, artifact.provenance.kernel_text);
  EXPECT_TRUE(facts->provenance.standardize);
  EXPECT_EQ(facts->provenance.seed, artifact.provenance.seed);
  EXPECT_LT(read, 1024);
  EXPECT_EQ(charged, read - kArtifactHeadBytes);
}

TEST(ArtifactTest, FactsThatNobodyPaysForAreNotRead) {
  const std::string bytes = *EncodeArtifact(MakeArtifact(MakePlan({})));
  int64_t read = 0;
  const auto refused = ReadArtifactFacts(bytes.size(), RangeOf(bytes, read), [](int64_t) {
    return absl::ResourceExhaustedError("nothing left");
  });
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(read, kArtifactHeadBytes);
}

TEST(ArtifactTest, EveryKindOfStageSurvivesWithEqualBytesAndEqualFeatures) {
  std::vector<PlanShape> shapes = ShapesOfEveryKind(FloatType::kFloat32);
  for (const PlanShape& shape : ShapesOfEveryKind(FloatType::kFloat64)) shapes.push_back(shape);
  for (const PlanShape& shape : shapes) {
    const Matrix<double> x = UniformRows({.rows = 9, .cols = shape.columns, .seed = 1});
    const Artifact artifact = MakeArtifact(MakePlan(shape));
    const absl::StatusOr<std::string> bytes = EncodeArtifact(artifact);
    ASSERT_TRUE(bytes.ok()) << shape.ToText() << bytes.status();
    const absl::StatusOr<Artifact> decoded = DecodeArtifact(*bytes);
    ASSERT_TRUE(decoded.ok()) << shape.ToText() << decoded.status();
    EXPECT_EQ(decoded->provenance.spec_text, artifact.provenance.spec_text);
    EXPECT_EQ(decoded->provenance.kernel_text, artifact.provenance.kernel_text);
    EXPECT_EQ(decoded->provenance.standardize, true);
    EXPECT_EQ(decoded->provenance.seed, 0xfedcba9876543210);
    EXPECT_EQ(decoded->certificate, artifact.certificate);
    EXPECT_EQ(decoded->plan.arithmetic, kArithmetic);
    EXPECT_EQ(*EncodeArtifact(*decoded), *bytes) << shape.ToText();
    EXPECT_TRUE(SameBits(MustTransformWide(decoded->plan, WireRows(x)),
                         MustTransformWide(artifact.plan, WireRows(x))))
        << shape.ToText();
  }
}

// In an F2 artifact, the kernel values K(a, a) of the landmarks a are stored before the triangle.
// Features do not depend on these values.
TEST(ArtifactTest, TriangleOfLandmarksSurvivesWithTheirKernelValues) {
  const Matrix<double> x = UniformRows({.rows = 9, .cols = 5, .seed = 1});
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    Artifact artifact = MakeArtifact(MakePlan({.serving_type = type, .w = WKind::kTriangular}));
    const Matrix<double> features = MustTransformWide(artifact.plan, WireRows(x));
    const std::vector<double> self = {1, 0.5, 2, 1e-300, 3, 1e300, 7};
    std::visit(
        [&](auto& stages) {
          using T = typename std::decay_t<decltype(stages)>::Element;
          std::get<TriangularProjection<T>>(stages.projection).self_values = self;
        },
        artifact.plan.stages);
    const std::string bytes = EncodeArtifact(artifact).value();
    const Artifact decoded = DecodeArtifact(bytes).value();
    std::visit(
        [&](const auto& stages) {
          using T = typename std::decay_t<decltype(stages)>::Element;
          EXPECT_EQ(std::get<TriangularProjection<T>>(stages.projection).self_values, self);
        },
        decoded.plan.stages);
    EXPECT_EQ(*EncodeArtifact(decoded), bytes);
    EXPECT_TRUE(SameBits(MustTransformWide(decoded.plan, WireRows(x)), features));
  }
}

TEST(ArtifactTest, BytesMayStandAtAnyAlignment) {
  const std::string bytes = *EncodeArtifact(MakeArtifact(MakePlan({.w = WKind::kTriangular})));
  for (size_t shift = 1; shift < 8; ++shift) {
    const std::string shifted = std::string(shift, 'x') + bytes;
    EXPECT_TRUE(DecodeArtifact(absl::string_view(shifted).substr(shift)).ok());
  }
}

TEST(ArtifactTest, RemoteBlockSurvives) {
  for (const auto kind : {RemoteFeatures::StoredKind::kBytes, RemoteFeatures::StoredKind::kText}) {
    Plan plan = MakePlan({.serving_type = FloatType::kFloat64,
                          .features = FeatureKind::kRemote,
                          .feature_count = 3,
                          .centre = true,
                          .w = WKind::kTriangular});
    auto& block = std::get<RemoteFeatures>(std::get<1>(plan.stages).features);
    block.kind = kind;
    block.examples[2] = std::string("\0\xff", 2);
    const std::string bytes = *EncodeArtifact(MakeArtifact(std::move(plan)));
    const Artifact decoded = DecodeArtifact(bytes).value();
    const auto& remote = std::get<RemoteFeatures>(std::get<1>(decoded.plan.stages).features);
    EXPECT_EQ(remote.kernel, "k");
    EXPECT_EQ(remote.endpoint, "similarity.example:7000");
    EXPECT_EQ(remote.kind, kind);
    EXPECT_EQ(remote.examples, (std::vector<std::string>{"a b0", "", std::string("\0\xff", 2)}));
    EXPECT_EQ(*EncodeArtifact(decoded), bytes);
  }
}

TEST(ArtifactTest, InvalidPlansAreNotWritten) {
  Artifact artifact = MakeArtifact(MakePlan({}));
  artifact.plan.input.shift = {1};
  EXPECT_EQ(EncodeArtifact(artifact).status().code(), StatusCode::kInvalidArgument);
}

// Checks the header against the byte table of docs/formats.md.
TEST(ArtifactTest, HeaderAndTableStandWhereTheFormatSays) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    const std::string bytes = *EncodeArtifact(MakeArtifact(MakePlan({.serving_type = type})));
    EXPECT_EQ(bytes.substr(0, 8), "PHIMAP\r\n");
    EXPECT_EQ(ReadAt<uint32_t>(bytes, 8), 1u);   // format
    EXPECT_EQ(ReadAt<uint32_t>(bytes, 12), 1u);  // arithmetic
    EXPECT_EQ(ReadAt<uint32_t>(bytes, 16), type == FloatType::kFloat32 ? 1u : 2u);
    EXPECT_EQ(ReadAt<uint32_t>(bytes, 20), 5u);  // sections
    EXPECT_EQ(ReadAt<uint32_t>(bytes, 24), 0u);  // reserved
    EXPECT_EQ(ReadAt<uint32_t>(bytes, 28), Crc32c(bytes.substr(0, 28) + bytes.substr(32, 5 * 24)));
    uint64_t end = 32 + 5 * 24;
    for (int s = 0; s < 5; ++s) {
      const int64_t entry = 32 + 24 * s;
      const auto offset = ReadAt<uint64_t>(bytes, entry + 8);
      const auto size = ReadAt<uint64_t>(bytes, entry + 16);
      EXPECT_EQ(ReadAt<uint32_t>(bytes, entry), static_cast<uint32_t>(s + 1));
      EXPECT_EQ(ReadAt<uint32_t>(bytes, entry + 4), Crc32c(bytes.substr(offset, size)));
      EXPECT_EQ(offset, (end + 63) / 64 * 64);
      end = offset + size;
    }
    EXPECT_EQ(end, bytes.size());
  }
}

// The format is frozen, so an artifact can be read forever. If this test fails, the format has
// changed, and its version number must change too.
TEST(ArtifactTest, BytesOfAFixedPlanNeverChange) {
  Plan plan;
  plan.input = {.columns = 2, .shift = {0.5, -1}, .scale = {2, 4}, .projection = {}};
  Matrix<float> rows(2, 2);
  rows(0, 0) = 1;
  rows(0, 1) = 2;
  rows(1, 0) = -3;
  rows(1, 1) = 0.25;
  ServingStages<float> stages;
  stages.features = ProductFeatures<float>{
      std::move(rows), *KernelProgram::FromOps({{.code = KernelOpCode::kPushProduct},
                                                {.code = KernelOpCode::kAffine, .a = 0.5, .b = 1},
                                                {.code = KernelOpCode::kPower, .n = 3}})};
  stages.centre = {0.125, 0.25};
  TriangularProjection<float> triangle{.order = 2, .elements = AlignedArray<float>(3)};
  triangle.elements.data()[0] = 1;
  triangle.elements.data()[1] = -2;
  triangle.elements.data()[2] = 3;
  stages.projection = std::move(triangle);
  plan.stages = std::move(stages);
  const std::string bytes = *EncodeArtifact(
      {.plan = std::move(plan),
       .provenance = {.spec_text = "m", .kernel_text = "k", .standardize = true, .seed = 42},
       .certificate = "c"});
  EXPECT_EQ(bytes.size(), 833u);
  EXPECT_EQ(Crc32c(bytes), 27207439u);
}

// Returns an artifact with names for its columns.
Artifact MakeNamedArtifact(int64_t columns = 3) {
  Artifact artifact = MakeArtifact(MakePlan({.columns = columns}));
  for (int64_t j = 0; j < columns; ++j) {
    artifact.provenance.column_names.push_back("column " + std::to_string(j));
  }
  return artifact;
}

TEST(ArtifactTest, ColumnNamesAreKeptInASectionThatIsThereOnlyForThem) {
  Artifact named = MakeNamedArtifact();
  const std::string bytes = *EncodeArtifact(named);
  EXPECT_EQ(ArtifactFormatOf(bytes), 2u);
  EXPECT_EQ(ArtifactSizeInHead(bytes.substr(0, kArtifactHeadBytes)).value_or(-1), bytes.size());
  const auto decoded = DecodeArtifact(bytes).value();
  EXPECT_EQ(decoded.provenance.column_names, named.provenance.column_names);
  EXPECT_EQ(*EncodeArtifact(decoded), bytes);
  int64_t read = 0;
  const auto facts = ReadArtifactFacts(bytes.size(), RangeOf(bytes, read)).value();
  EXPECT_EQ(facts.provenance.column_names, named.provenance.column_names);

  named.provenance.column_names.clear();
  const std::string without = *EncodeArtifact(named);
  EXPECT_EQ(ArtifactFormatOf(without), 1u);
  EXPECT_EQ(ReadAt<uint32_t>(without, 20), 5u);
  EXPECT_EQ(ArtifactFormatOf("PHIMAP"), 0u);
}

TEST(ArtifactTest, NamesThatAreNotOneForEachColumnAreRefused) {
  const std::vector<std::vector<std::string>> bad = {{"a", "b"},
                                                     {"a", "b", "c", "d"},
                                                     {"a", "b", "a"},
                                                     {"a", "", "c"},
                                                     {"a", "b", std::string(257, 'c')}};
  for (const std::vector<std::string>& names : bad) {
    Artifact artifact = MakeNamedArtifact();
    artifact.provenance.column_names = names;
    EXPECT_THAT(EncodeArtifact(artifact).status(),
                IsError(StatusCode::kInvalidArgument, "COLUMN_NAMES_INVALID"));
  }
}

TEST(ArtifactTest, EveryDamagedByteOfNamesAndTheirTableIsSeen) {
  const std::string bytes = *EncodeArtifact(MakeNamedArtifact());
  const auto offset = static_cast<size_t>(ReadAt<uint64_t>(bytes, 32 + 5 * 24 + 8));
  ASSERT_LT(offset, bytes.size());
  std::string damaged = bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i >= static_cast<size_t>(kArtifactHeadBytes) && i < offset) continue;
    damaged[i] ^= 1;
    EXPECT_FALSE(DecodeArtifact(damaged).ok()) << i;
    damaged[i] ^= 1;
  }
  EXPECT_FALSE(DecodeArtifact(absl::string_view(bytes).substr(0, bytes.size() - 1)).ok());
}

}  // namespace
}  // namespace phimap::testing
