// The bytes of heads: what is written is read again, and what nobody can have written is refused.
#include "core/head/head.h"

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/heads.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"

namespace phimap::testing {
namespace {

std::vector<HeadShape> HeadShapes() {
  return {{.features = 5, .classes = 3},
          {.features = 4, .classes = 2, .folded = false},
          {.features = 7, .classes = 0},
          {.features = 6, .classes = 0, .variance = true},
          {.features = 1, .classes = 9, .calibration_rows = 0}};
}

TEST(HeadTest, AHeadSurvivesWithoutItsVariance) {
  for (const HeadShape& shape : HeadShapes()) {
    Head head = MakeHead(shape);
    head.integer_classes = false;
    const std::string bytes = EncodeHead(head);
    const Head decoded = DecodeHead(bytes).value();
    EXPECT_EQ(decoded.task, head.task);
    EXPECT_EQ(decoded.learner_text, head.learner_text);
    EXPECT_EQ(decoded.features_digest, head.features_digest);
    EXPECT_EQ(decoded.classes, head.classes);
    EXPECT_FALSE(decoded.integer_classes);
    EXPECT_TRUE(SameBits(decoded.weights, head.weights));
    EXPECT_EQ(decoded.intercepts, head.intercepts);
    EXPECT_EQ(decoded.folded, head.folded);
    EXPECT_EQ(decoded.link.kind, head.link.kind);
    EXPECT_EQ(decoded.link.slope, head.link.slope);
    EXPECT_EQ(decoded.link.offset, head.link.offset);
    EXPECT_EQ(decoded.calibration.scores, head.calibration.scores);
    EXPECT_EQ(decoded.calibration.classes, head.calibration.classes);
    EXPECT_EQ(decoded.report, head.report);
    EXPECT_TRUE(decoded.variance.empty());
    EXPECT_EQ(EncodeHead(decoded), bytes);
  }
}

TEST(HeadTest, AVarianceSurvivesInItsOwnBytes) {
  const Head head = MakeHead({.features = 6, .classes = 0, .variance = true});
  const std::string bytes = EncodeVariance(head.variance);
  const HeadVariance decoded = DecodeVariance(bytes).value();
  EXPECT_EQ(decoded.noise, head.variance.noise);
  EXPECT_EQ(decoded.scale, head.variance.scale);
  ASSERT_EQ(decoded.inverse_factor.size(), 21);
  EXPECT_TRUE(
      SameBits(decoded.inverse_factor.data(), head.variance.inverse_factor.data(), int64_t{21}));
  EXPECT_EQ(EncodeVariance(decoded), bytes);
  EXPECT_EQ(EncodeVariance(HeadVariance()), "");
  EXPECT_TRUE(DecodeVariance("").value().empty());
}

// Reads the fields of a head as docs/formats.md describes them.
TEST(HeadTest, FieldsStandWhereTheFormatSays) {
  Head head = MakeHead({.features = 2, .classes = 2, .calibration_rows = 3});
  head.classes = {"7", "-1"};
  head.integer_classes = true;
  const std::string bytes = EncodeHead(head);
  EXPECT_EQ(ReadAt<uint8_t>(bytes, 0), 1);  // classes
  EXPECT_EQ(ReadAt<uint8_t>(bytes, 1), 1);  // Platt
  EXPECT_EQ(ReadAt<uint8_t>(bytes, 2), 1);  // integers
  EXPECT_EQ(ReadAt<uint8_t>(bytes, 3), 1);  // folded
  EXPECT_EQ(ReadAt<double>(bytes, 4), 2.5);
  EXPECT_EQ(ReadAt<double>(bytes, 12), 0.25);
  size_t at = 20;
  const auto text = [&] {
    const auto length = ReadAt<uint32_t>(bytes, static_cast<int64_t>(at));
    const std::string value = bytes.substr(at + 4, length);
    at += 4 + length;
    return value;
  };
  EXPECT_EQ(text(), "logistic(C=1)");
  EXPECT_EQ(text(), std::string(64, 'a'));
  EXPECT_EQ(ReadAt<uint32_t>(bytes, static_cast<int64_t>(at)), 2u);
  at += 4;
  EXPECT_EQ(text(), "7");
  EXPECT_EQ(text(), "-1");
  EXPECT_EQ(text(), head.report);
  const auto number = [&] {
    at += 8;
    return ReadAt<int64_t>(bytes, static_cast<int64_t>(at) - 8);
  };
  const auto align = [&] { at = (at + 63) / 64 * 64; };
  EXPECT_EQ(number(), 2);  // features
  EXPECT_EQ(number(), 1);  // scores
  align();
  EXPECT_TRUE(std::memcmp(bytes.data() + at, head.weights.data(), 16) == 0);
  at += 16;
  EXPECT_EQ(number(), 1);
  align();
  EXPECT_EQ(ReadAt<double>(bytes, static_cast<int64_t>(at)), head.intercepts[0]);
  at += 8;
  EXPECT_EQ(number(), 3);
  align();
  EXPECT_TRUE(std::memcmp(bytes.data() + at, head.calibration.scores.data(), 24) == 0);
  at += 24;
  EXPECT_EQ(number(), 3);
  align();
  EXPECT_EQ(ReadAt<int32_t>(bytes, static_cast<int64_t>(at) + 4), 1);
  EXPECT_EQ(bytes.size(), at + 12);
}

TEST(HeadTest, PartsThatDoNotFitAreRefusedWithTheirName) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    const char* field;
    std::function<void(Head&)> edit;
    int64_t classes = 3;
  };
  const Case kCases[] = {
      {"weights", [](Head& h) { h.weights = Matrix<double>(4, 3); }},
      {"weights", [](Head& h) { h.weights = Matrix<double>(5, 1); }},
      {"weights", [](Head& h) { h.weights(1, 2) = kNaN; }},
      {"intercepts", [](Head& h) { h.intercepts.pop_back(); }},
      {"intercepts", [](Head& h) { h.intercepts[0] = kNaN; }},
      {"classes", [](Head& h) { h.classes = {"one"}; }},
      {"classes[1]", [](Head& h) { h.classes[1] = ""; }},
      {"classes[1]", [](Head& h) { h.classes[1] = std::string(257, 'x'); }},
      {"classes[1]", [](Head& h) { h.classes[1] = "\xff"; }},
      {"classes[2]", [](Head& h) { h.classes[2] = h.classes[0]; }},
      {"classes[0]", [](Head& h) { h.integer_classes = true; }},
      {"features_digest", [](Head& h) { h.features_digest.pop_back(); }},
      {"features_digest", [](Head& h) { h.features_digest[3] = 'G'; }},
      {"learner_text", [](Head& h) { h.learner_text = "\xc3"; }},
      {"link", [](Head& h) { h.link.kind = Link::Kind::kPlatt; }},
      {"link", [](Head& h) { h.link.kind = Link::Kind::kTemperature; }, 2},
      {"link", [](Head& h) { h.link.slope = 0; }},
      {"link", [](Head& h) { h.link.offset = kNaN; }},
      {"link", [](Head& h) { h.link.kind = Link::Kind::kPlatt; }, 0},
      {"calibration", [](Head& h) { std::swap(h.calibration.scores[0], h.calibration.scores[9]); }},
      {"calibration", [](Head& h) { h.calibration.scores[0] = -1; }},
      {"calibration", [](Head& h) { h.calibration.scores.back() = kNaN; }},
      {"calibration", [](Head& h) { h.calibration.classes[0] = 3; }},
      {"calibration", [](Head& h) { h.calibration.classes.pop_back(); }},
      {"calibration", [](Head& h) { h.calibration.classes = {0}; }, 0},
      {"classes",
       [](Head& h) {
         h.classes = {"a", "b"};
       },
       0},
      {"variance", [](Head& h) { h.variance.noise = 0; }, 0},
      {"variance", [](Head& h) { h.variance.scale = kNaN; }, 0},
      {"variance", [](Head& h) { h.variance.inverse_factor.data()[5] = 0; }, 0},
      {"variance", [](Head& h) { h.variance.inverse_factor.data()[14] = -1; }, 0},
      {"variance", [](Head& h) { h.variance.inverse_factor = AlignedArray<double>(16); }, 0},
  };
  for (const Case& c : kCases) {
    Head head = MakeHead({.features = 5, .classes = c.classes, .variance = c.classes == 0});
    c.edit(head);
    EXPECT_THAT(head.Validate(5), IsError(StatusCode::kInvalidArgument, "PLAN_INVALID", c.field));
    // The same head as bytes: only the variance has bytes of its own.
    if (std::string(c.field) != "variance" && head.weights.rows() == 5) {
      EXPECT_TRUE(absl::IsDataLoss(DecodeHead(EncodeHead(head)).status())) << c.field;
    }
  }
}

TEST(HeadTest, NewerTasksAndLinksAreUnimplementedNotDamaged) {
  for (const int64_t at : {0, 1}) {
    std::string bytes = EncodeHead(MakeHead({.features = 5}));
    bytes[at] = 3;
    EXPECT_THAT(DecodeHead(bytes).status(), IsError(StatusCode::kUnimplemented, "FORMAT_UNKNOWN"));
  }
}

bool IsRefusedHead(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsUnimplemented(status);
}

TEST(HeadTest, TruncatedAndLongerBytesAreDamaged) {
  const Head head = MakeHead({.features = 3, .classes = 0, .variance = true});
  for (const bool variance : {false, true}) {
    const std::string bytes = variance ? EncodeVariance(head.variance) : EncodeHead(head);
    const auto decode = [&](absl::string_view part) {
      return variance ? DecodeVariance(part).status() : DecodeHead(part).status();
    };
    for (size_t length = variance ? 1 : 0; length < bytes.size(); ++length) {
      EXPECT_TRUE(absl::IsDataLoss(decode(bytes.substr(0, length)))) << length;
    }
    EXPECT_TRUE(absl::IsDataLoss(decode(bytes + '\0')));
  }
}

// The checksums of an artifact's sections cover accidents. These bytes are an attacker's.
TEST(HeadTest, MutatedBytesDecodeToValidHeadsOrAreRefused) {
  std::vector<std::string> seeds;
  for (const HeadShape& shape : HeadShapes()) seeds.push_back(EncodeHead(MakeHead(shape)));
  const std::string variance =
      EncodeVariance(MakeHead({.features = 4, .classes = 0, .variance = true}).variance);
  constexpr uint64_t kHostile[] = {
      0,           1,          0xffff,     0x10001,          0x7fffffff,
      0xffffffffu, 1ull << 40, 1ull << 61, (1ull << 63) - 1, ~0ull};
  RandomCursor random(RandomStream(20261128, StreamId::kStartVectors));
  int accepted = 0;
  for (int iteration = 0; iteration < 20000; ++iteration) {
    const bool of_variance = random.UniformBelow(4) == 0;
    std::string bytes = of_variance ? variance : seeds[random.UniformBelow(seeds.size())];
    const size_t at = random.UniformBelow(bytes.size());
    switch (random.UniformBelow(4)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.UniformBelow(8)));
        break;
      case 1:
        if (at + 8 <= bytes.size()) {
          WriteAt<uint64_t>(bytes, static_cast<int64_t>(at), kHostile[random.UniformBelow(10)]);
        }
        break;
      case 2:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, std::string(1 + random.UniformBelow(64), '\0'));
        break;
    }
    if (of_variance) {
      const absl::StatusOr<HeadVariance> decoded = DecodeVariance(bytes);
      ASSERT_TRUE(decoded.ok() ? EncodeVariance(*decoded) == bytes
                               : IsRefusedHead(decoded.status()));
      continue;
    }
    const absl::StatusOr<Head> decoded = DecodeHead(bytes);
    if (!decoded.ok()) {
      ASSERT_TRUE(IsRefusedHead(decoded.status())) << decoded.status();
      continue;
    }
    ++accepted;
    ASSERT_TRUE(decoded->Validate(decoded->weights.rows()).ok());
    ASSERT_EQ(EncodeHead(*decoded), bytes);
  }
  EXPECT_GT(accepted, 1000);
}

TEST(HeadTest, TheClassIsTheFirstOfTheHighestScoresOrTheSideOfZero) {
  EXPECT_EQ(ClassOf({0.5}), 1);
  EXPECT_EQ(ClassOf({-0.5}), 0);
  EXPECT_EQ(ClassOf({0.0}), 0);
  EXPECT_EQ(ClassOf({1.0, 3.0, 2.0}), 1);
  EXPECT_EQ(ClassOf({3.0, 3.0, 2.0}), 0);
}

}  // namespace
}  // namespace phimap::testing
