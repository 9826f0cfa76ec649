// Tests damaged artifacts. Artifacts are untrusted input. So the tests truncate them, flip bits,
// and make hostile artifacts with valid checksums.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/plan/artifact.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"

// Records the largest allocation of this program, to show that sizes are checked before memory is
// allocated.
namespace {
std::atomic<size_t> g_largest_request{0};

void* Allocate(size_t size, size_t alignment) {
  size_t seen = g_largest_request.load();
  while (size > seen && !g_largest_request.compare_exchange_weak(seen, size)) {
  }
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(std::max<size_t>(size, 1))
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

// These functions are not inlined. Otherwise gcc would see the free but not the malloc, and warn.
#define NOT_INLINED [[gnu::noinline]]
NOT_INLINED void* operator new(size_t size) { return Allocate(size, 1); }
NOT_INLINED void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
NOT_INLINED void operator delete(void* p) noexcept { std::free(p); }
NOT_INLINED void operator delete(void* p, size_t) noexcept { std::free(p); }
NOT_INLINED void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
NOT_INLINED void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
#undef NOT_INLINED

namespace phimap::testing {
namespace {

std::string Encoded(const PlanShape& shape) {
  return *EncodeArtifact({.plan = MakePlan(shape),
                          .provenance = {.spec_text = "f2(landmarks=7)",
                                         .kernel_text = "rbf(gamma=0.5)",
                                         .standardize = true,
                                         .seed = 3},
                          .certificate = "opaque"});
}

std::string EncodedWithHead() {
  return *EncodeArtifact({.plan = MakePlan({.columns = 2, .feature_count = 2}),
                          .provenance = {},
                          .certificate = "opaque",
                          .drift_reference = "drift",
                          .head = "head",
                          .head_variance = "variance"});
}

// Returns one small artifact for each kind of stage, and one with a head.
std::vector<std::string> SmallArtifacts() {
  using enum WKind;
  using enum FeatureKind;
  return {Encoded({.columns = 3,
                   .shift = true,
                   .scale = true,
                   .feature_count = 3,
                   .centre = true,
                   .w = kTriangular}),
          Encoded({.serving_type = FloatType::kFloat64,
                   .columns = 2,
                   .projected = 2,
                   .features = kL1,
                   .feature_count = 2,
                   .kernel = "linear()",
                   .w = kDense,
                   .outputs = 2}),
          Encoded({.columns = 2,
                   .feature_count = 3,
                   .kernel = "poly(degree=2)",
                   .w = kSparse,
                   .outputs = 3}),
          Encoded({.columns = 2,
                   .feature_count = 2,
                   .kernel = "normalize(bilinear(matrix=[2, 1; 1, 2]) + laplacian(gamma=1))"}),
          Encoded({.columns = 2, .features = kSinCos, .feature_count = 4}),
          Encoded({.columns = 2, .features = kPhase, .feature_count = 3}),
          Encoded({.columns = 2, .features = kMonomials, .feature_count = 3}),
          Encoded({.features = kRemote, .feature_count = 2, .w = kDense, .outputs = 2}),
          Encoded({.features = kStrings, .feature_count = 3, .w = kTriangular}),
          EncodedWithHead()};
}

bool IsRefusal(const absl::Status& status) {
  return (status.code() == StatusCode::kDataLoss || status.code() == StatusCode::kUnimplemented) &&
         DetailOf(status).has_value() && !status.message().empty();
}

TEST(ArtifactDamageTest, ADamagedSectionIsNamed) {
  const std::string good = Encoded({});
  const char* const names[] = {"1 (provenance)", "2 (input stage)", "3 (feature stage)",
                               "4 (projection stage)", "5 (certificate)"};
  for (int i = 0; i < 5; ++i) {
    std::string bad = good;
    bad[SectionOffset(good, i) + SectionSize(good, i) - 1] ^= 1;
    const absl::Status status = DecodeArtifact(bad).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find(names[i]), absl::string_view::npos) << status;
  }
}

absl::Status FactsOf(absl::string_view bytes, int64_t size) {
  return ReadArtifactFacts(
             size,
             [&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
               return std::string(bytes.substr(std::min<size_t>(offset, bytes.size()), count));
             })
      .status();
}

// Facts are read from the head of an artifact and from two of its sections. The bytes between these
// are not read.
TEST(ArtifactDamageTest, EveryByteThatFactsAreReadFromIsChecked) {
  for (const std::string& good : SmallArtifacts()) {
    const auto size = static_cast<int64_t>(good.size());
    ASSERT_TRUE(FactsOf(good, size).ok());
    std::string damaged = good;
    const auto check = [&](int64_t begin, int64_t count) {
      for (int64_t at = begin; at < begin + count; ++at) {
        damaged[at] = static_cast<char>(good[at] ^ 1);
        ASSERT_TRUE(IsRefusal(FactsOf(damaged, size))) << "byte " << at;
        damaged[at] = good[at];
      }
    };
    // The first section may end before the head does; zeros that follow it are not read as facts.
    check(0, std::min(SectionOffset(good, 0), kArtifactHeadBytes));
    for (const int section : {0, 4}) {
      check(SectionOffset(good, section), SectionSize(good, section));
    }
  }
}

TEST(ArtifactDamageTest, FactsOfAnArtifactOfAnotherSizeAreNotRead) {
  const std::string good = Encoded({});
  const auto size = static_cast<int64_t>(good.size());
  for (int64_t length = 0; length < size; ++length) {
    EXPECT_TRUE(absl::IsDataLoss(FactsOf(good.substr(0, length), length))) << length;
  }
  // The certificate, which is the last section, is cut off.
  EXPECT_TRUE(absl::IsDataLoss(FactsOf(good.substr(0, size - 1), size)));
  EXPECT_TRUE(absl::IsDataLoss(FactsOf(good, size + 1)));
}

TEST(ArtifactDamageTest, EveryTruncationIsDataLoss) {
  for (const std::string& bytes : SmallArtifacts()) {
    ASSERT_TRUE(DecodeArtifact(bytes).ok());
    for (size_t length = 0; length < bytes.size(); ++length) {
      const absl::Status status =
          DecodeArtifact(absl::string_view(bytes).substr(0, length)).status();
      ASSERT_EQ(status.code(), StatusCode::kDataLoss) << length << ": " << status;
      ASSERT_TRUE(DetailOf(status)->metadata.contains("offset")) << status;
    }
    EXPECT_EQ(DecodeArtifact(bytes + '\0').status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(DecodeArtifact(bytes + std::string(64, '\0')).status().code(), StatusCode::kDataLoss);
  }
}

TEST(ArtifactDamageTest, EveryFlippedBitIsRefused) {
  for (const std::string& bytes : SmallArtifacts()) {
    std::string damaged = bytes;
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        damaged[at] = static_cast<char>(bytes[at] ^ (1 << bit));
        const absl::Status status = DecodeArtifact(damaged).status();
        ASSERT_TRUE(IsRefusal(status)) << "bit " << bit << " of byte " << at << ": " << status;
      }
      damaged[at] = static_cast<char>(~bytes[at]);
      ASSERT_TRUE(IsRefusal(DecodeArtifact(damaged).status())) << "byte " << at;
      damaged[at] = bytes[at];
    }
  }
}

TEST(ArtifactDamageTest, NewerNumbersAreUnimplementedNotDamaged) {
  struct Case {
    int64_t offset;
    uint32_t newer;
    const char* what;
  };
  for (const Case& c :
       {Case{8, kArtifactFormat + 1, "format version"}, Case{12, 2, "arithmetic"}}) {
    std::string bytes = SmallArtifacts()[0];
    WriteAt<uint32_t>(bytes, c.offset, c.newer);
    FixChecksums(bytes);
    EXPECT_THAT(DecodeArtifact(bytes).status(),
                IsError(StatusCode::kUnimplemented, _, _, HasSubstr(c.what)))
        << c.what;
  }
  // The kind of a stage is the first byte of the features section. In the projection section, the
  // kind comes after the centre, which consists of its count and padding to 64 bytes.
  for (const uint8_t kind : {3, 10, 99, 255}) {
    std::string bytes = SmallArtifacts()[0];
    WriteAt<uint8_t>(bytes, SectionOffset(bytes, 2), kind);
    FixChecksums(bytes);
    EXPECT_EQ(DecodeArtifact(bytes).status().code(), StatusCode::kUnimplemented) << kind;
  }
}

// Checks that no single allocation of the decoder is larger than a few times its input.
void ExpectBoundedMemory(const std::string& bytes, size_t limit, const char* what, int64_t at) {
  g_largest_request = 0;
  {
    const absl::StatusOr<Artifact> artifact = DecodeArtifact(bytes);
    ASSERT_TRUE(artifact.ok() || IsRefusal(artifact.status())) << what << artifact.status();
  }
  ASSERT_LE(g_largest_request.load(), limit) << what << " at " << at;
}

TEST(ArtifactDamageTest, HugeCountsWithTrueChecksumsAreRefusedBeforeMemoryIsTaken) {
  constexpr uint64_t kHostile[] = {
      0,           1,           0xff,       0xffff,     0x10000,    0x10001,    0x7fffffff,
      0x80000000u, 0xffffffffu, 1ull << 32, 1ull << 40, 1ull << 61, 1ull << 62, (1ull << 63) - 1,
      1ull << 63,  ~0ull,       ~0ull - 63};
  for (const std::string& bytes : SmallArtifacts()) {
    // Error messages and the program's own strings are small; a section is at most the artifact.
    const size_t limit = 4 * bytes.size() + 4096;
    for (int64_t at = 20; at < static_cast<int64_t>(bytes.size()); ++at) {
      for (const uint64_t value : kHostile) {
        std::string hostile = bytes;
        if (at + 8 <= static_cast<int64_t>(bytes.size())) {
          WriteAt<uint64_t>(hostile, at, value);
          FixChecksums(hostile);
          ASSERT_NO_FATAL_FAILURE(ExpectBoundedMemory(hostile, limit, "u64", at));
        }
        hostile = bytes;
        if (at + 4 <= static_cast<int64_t>(bytes.size())) {
          WriteAt<uint32_t>(hostile, at, static_cast<uint32_t>(value));
          FixChecksums(hostile);
          ASSERT_NO_FATAL_FAILURE(ExpectBoundedMemory(hostile, limit, "u32", at));
        }
      }
    }
  }
}

// A sparse W of 65,536 × 65,536 without any value takes 0.5 MiB in the file, but its dense form
// would take 16 GiB.
TEST(ArtifactDamageTest, SmallArtifactDoesNotUnfoldIntoGigabytesWhenLoaded) {
  constexpr int64_t kN = kMaxPlanDimension;
  Plan plan;
  plan.input.columns = 1;
  ServingStages<float> stages;
  stages.features = ProductFeatures<float>{Matrix<float>(kN, 1), KernelProgram()};
  stages.projection = SparseProjection<float>{.rows = kN,
                                              .columns = kN,
                                              .row_offsets = std::vector<int64_t>(kN + 1),
                                              .column_indices = {},
                                              .values = {}};
  plan.stages = std::move(stages);
  ASSERT_TRUE(plan.Validate().ok());
  g_largest_request = 0;
  const absl::Status status = Engine::Load(plan).status();
  EXPECT_LE(g_largest_request.load(), size_t{1} << 30);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
}

// Mutates valid artifacts and restores their checksums. An artifact that still decodes must encode
// to the same bytes again, and must load.
TEST(ArtifactDamageTest, MutatedArtifactsDecodeToValidPlansOrAreRefused) {
  const std::vector<std::string> seeds = SmallArtifacts();
  RandomCursor random(RandomStream(20240501, StreamId::kStartVectors));
  int accepted = 0;
  for (int iteration = 0; iteration < 30000; ++iteration) {
    std::string bytes = seeds[random.UniformBelow(seeds.size())];
    const int64_t edits = 1 + static_cast<int64_t>(random.UniformBelow(3));
    for (int64_t e = 0; e < edits; ++e) {
      const int section = static_cast<int>(random.UniformBelow(4));
      std::string content =
          bytes.substr(SectionOffset(bytes, section), SectionSize(bytes, section));
      if (content.empty()) continue;
      const size_t at = random.UniformBelow(content.size());
      switch (random.UniformBelow(4)) {
        case 0:
          content[at] = static_cast<char>(content[at] ^ (1 << random.UniformBelow(8)));
          break;
        case 1:
          content[at] = static_cast<char>(random.UniformBelow(256));
          break;
        case 2:
          content.resize(at);
          break;
        default:
          content.insert(at, std::string(1 + random.UniformBelow(64), '\0'));
          break;
      }
      bytes = WithSection(bytes, section, content);
    }
    const absl::StatusOr<Artifact> artifact = DecodeArtifact(bytes);
    if (!artifact.ok()) {
      ASSERT_TRUE(IsRefusal(artifact.status())) << iteration << ": " << artifact.status();
      continue;
    }
    ++accepted;
    const absl::StatusOr<std::string> again = EncodeArtifact(*artifact);
    ASSERT_TRUE(again.ok()) << iteration << ": " << again.status();
    ASSERT_EQ(*again, bytes) << iteration;
    const auto engine = Engine::Load(artifact->plan);
    // Loading may fail for two reasons: a remote block cannot run here, and the norm of a landmark
    // can overflow although the landmark itself does not.
    if (!engine.ok()) {
      ASSERT_TRUE(engine.status().code() == StatusCode::kUnimplemented ||
                  engine.status().code() == StatusCode::kFailedPrecondition)
          << engine.status();
      continue;
    }
    const std::vector<double> row((*engine)->input_columns(), 0.5);
    const RowsView rows{reinterpret_cast<const char*>(row.data()), FloatType::kFloat64, 1,
                        (*engine)->input_columns()};
    std::vector<double> features((*engine)->output_columns());
    const std::string text = "a bc bc";
    const std::string* const place = &text;
    const StringsView strings{ExampleKind::kText, &place, 1, 7};
    const bool of_strings = (*engine)->takes_strings();
    TransformPart part{.rows = of_strings ? ExamplesView(strings) : ExamplesView(rows),
                       .features = features.data(),
                       .status = absl::OkStatus()};
    EngineScratch scratch;
    (*engine)->Transform(absl::MakeSpan(&part, 1), scratch);
  }
  EXPECT_GT(accepted, 1000);  // many mutations pass the first checks
}

}  // namespace
}  // namespace phimap::testing
