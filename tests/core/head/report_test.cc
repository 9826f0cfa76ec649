#include "core/head/report.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TrainingReport OfClasses() {
  return {.parts = {.rows = {15'000, 1000, 999, 1001, 2000}, .unused = 3, .large_groups = 40},
          .confidence = 0.9,
          .premise = "drawn independently",
          .classes = ClassFigures{.rows = 2000,
                                  .errors = 40,
                                  .error = {0.02, 0.0143, 0.0271},
                                  .classes = {{1200, 1190, 1175}, {800, 810, 785}, {0, 0, 0}},
                                  .confusion = {{0, 0, 1175}, {0, 1, 25}, {1, 0, 15}, {1, 1, 785}},
                                  .balanced_accuracy = 0.98,
                                  .auc = 0.995,
                                  .roc = {{3.5, 0, 0.5}, {-0.25, 0.125, 0.875}, {-7, 1, 1}},
                                  .log_loss = 0.0625,
                                  .brier = 0.015,
                                  .calibration_error = 0.01,
                                  .reliability = {{5, 100, 55, 0.53}, {9, 1900, 1905, 0.99}},
                                  .margins = {-0.5, 0, 0.25},
                                  .unnormalised_margins = {-1.5, 0, 2.25},
                                  .kernel_margins = {-0.25, 0.125},
                                  .intercept_scale = 1,
                                  .certified = {{0, -0.5, std::nullopt}, {0.05, 0.01, 0.005}}},
          .coverage = {{0.8, 2000, 1611, 0.79, 0.82, 0.9}, {0.95, 2000, 1899, 0.9, 0.96, 1.25}},
          .class_conditional = true,
          .baselines = {{"logistic on the raw standardised rows", 0.2}, {"most frequent", 0.4}},
          .choice = ParameterChoice{.parameter = "C",
                                    .loss = "share of errors",
                                    .chosen = 10,
                                    .candidates = {{1, 0.031}, {10, 0.022}, {100, 0.024}}},
          .folding = FoldingFigures{1000, 1e-4, 69, 1},
          .notes = {"landmarks came from these rows", "", "third"}};
}

TrainingReport OfNumbers() {
  return {.parts = {.rows = {1500, 100, 0, 100, 200}},
          .premise = "",
          .numbers = NumberFigures{.rows = 200,
                                   .rmse = {1.5, 1.25, 1.75},
                                   .mae = {1.125, 1, 1.25},
                                   .r_squared = Estimate{0.9, 0.85, 0.925},
                                   .residuals = {-3, -0.5, 0.25, 4},
                                   .standardised_error = 1.0625}};
}

template <typename T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}
std::string ReportField(uint16_t tag, const std::string& bytes) {
  return Raw(tag) + Raw(static_cast<uint32_t>(bytes.size())) + bytes;
}

TEST(ReportTest, EveryMemberSurvives) {
  for (const TrainingReport& report : {OfClasses(), OfNumbers(), TrainingReport()}) {
    const std::string bytes = EncodeReport(report);
    const TrainingReport decoded = DecodeReport(bytes).value();
    EXPECT_TRUE(decoded == report);
    EXPECT_EQ(EncodeReport(decoded), bytes);
  }
}

TEST(ReportTest, AReportOfALargeHeadFits) {
  TrainingReport report = OfClasses();
  report.classes->classes.assign(1000, {20, 20, 19});
  report.classes->confusion.assign(static_cast<size_t>(kMaxConfusions), {999, 0, 1});
  report.classes->margins.assign(101, 0.5);
  EXPECT_TRUE(*DecodeReport(EncodeReport(report)) == report);
}

// The bytes are part of the artifact format: they are written out here once.
TEST(ReportTest, TheBytesAreThoseOfTheFormat) {
  const TrainingReport report{
      .confidence = 0.5, .numbers = NumberFigures{.rows = 3}, .baselines = {{"mean", 2}}};
  std::string zeros(8 * 7, '\0');
  const std::string expected =
      Raw(uint32_t{7}) + ReportField(1, zeros) + ReportField(2, Raw(0.5)) +
      ReportField(5, std::string(1, '\0')) + ReportField(6, Raw(uint32_t{4}) + "mean" + Raw(2.0)) +
      ReportField(64, Raw(int64_t{3})) + ReportField(65, std::string(24, '\0')) +
      ReportField(66, std::string(24, '\0'));
  EXPECT_EQ(EncodeReport(report), expected);
}

TEST(ReportTest, UnknownTagsAreSkipped) {
  const std::string bytes = Raw(uint32_t{3}) + ReportField(3, Raw(uint32_t{3}) + "why") +
                            ReportField(500, "from the future") + ReportField(65535, "");
  const TrainingReport decoded = DecodeReport(bytes).value();
  EXPECT_EQ(decoded.premise, "why");
  EXPECT_FALSE(decoded.classes.has_value() || decoded.numbers.has_value());
}

TEST(ReportTest, AnInfiniteNumberIsTheLargest) {
  TrainingReport report = OfNumbers();
  report.numbers->rmse.high = std::numeric_limits<double>::infinity();
  EXPECT_EQ(DecodeReport(EncodeReport(report))->numbers->rmse.high,
            std::numeric_limits<double>::max());
}

TEST(ReportTest, DamageIsDataLoss) {
  const auto one = [](uint16_t tag, const std::string& bytes) {
    return Raw(uint32_t{1}) + ReportField(tag, bytes);
  };
  const std::string rows = ReportField(32, Raw(int64_t{1}));
  const struct {
    const char* what;
    std::string bytes;
  } cases[] = {
      {"empty", ""},
      {"count cut off", std::string(3, '\0')},
      {"count beyond the fields", Raw(uint32_t{1})},
      {"count huge", Raw(uint32_t{0xffffffff})},
      {"bytes after the last field", Raw(uint32_t{0}) + "x"},
      {"field longer than the bytes", Raw(uint32_t{1}) + Raw(uint16_t{1}) + Raw(~uint32_t{0})},
      {"parts of 55 bytes", one(1, std::string(55, '\0'))},
      {"a count under 0", one(1, std::string(48, '\0') + Raw(int64_t{-1}))},
      {"a confidence that is no number", one(2, Raw(std::nan("")))},
      {"an infinite confidence", one(2, Raw(std::numeric_limits<double>::infinity()))},
      {"a flag of 2", one(5, "\2")},
      {"coverage of a half element", one(4, std::string(72, '\0'))},
      {"a baseline longer than its field", one(6, Raw(uint32_t{9}) + "mean" + Raw(2.0))},
      {"tags fall", Raw(uint32_t{2}) + ReportField(33, Raw(int64_t{1})) + rows},
      {"tag twice", Raw(uint32_t{2}) + rows + rows},
      {"classes and numbers", Raw(uint32_t{2}) + rows + ReportField(64, Raw(int64_t{1}))},
      {"a class that is none",
       Raw(uint32_t{3}) + rows + ReportField(35, std::string(24, '\0')) +
           ReportField(36, Raw(int32_t{0}) + Raw(int32_t{1}) + Raw(int64_t{5}))},
      {"a bin that is none",
       Raw(uint32_t{2}) + rows + ReportField(43, Raw(int32_t{10}) + std::string(24, '\0'))},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(DecodeReport(c.bytes).status(),
                IsError(StatusCode::kDataLoss, reason::kArtifactMalformed))
        << c.what;
  }
}

TEST(ReportTest, EveryTruncationIsDataLoss) {
  const std::string bytes = EncodeReport(OfClasses());
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_EQ(DecodeReport(bytes.substr(0, length)).status().code(), StatusCode::kDataLoss)
        << length;
  }
}

TEST(ReportTest, MutatedBytesDecodeOrAreDataLoss) {
  const std::string original = EncodeReport(OfClasses());
  RandomCursor random(RandomStream(1, StreamId::kLabRows));
  int decoded = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = original;
    const uint64_t changes = 1 + random.UniformBelow(3);
    for (uint64_t k = 0; k < changes; ++k) {
      bytes[random.UniformBelow(bytes.size())] = static_cast<char>(random.UniformBelow(256));
    }
    const absl::StatusOr<TrainingReport> report = DecodeReport(bytes);
    if (!report.ok()) {
      ASSERT_EQ(report.status().code(), StatusCode::kDataLoss);
      continue;
    }
    ++decoded;
    ASSERT_TRUE(*DecodeReport(EncodeReport(*report)) == *report);
  }
  EXPECT_GT(decoded, 100);
}

}  // namespace
}  // namespace phimap::testing
