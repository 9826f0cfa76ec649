// Tests the text of PostgreSQL's COPY that features are written in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/files/copy_writer.h"
#include "client/files/file_format.h"
#include "client/files/passthrough_cells.h"
#include "tests/client/temp_file.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

class CopyWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<RowWriter> Open(std::shared_ptr<PassthroughCells> passthrough = nullptr) {
    return OpenWriter(folder_.Path("out.copy"), OutputFormat::kCopy, std::nullopt,
                      std::move(passthrough))
        .value();
  }
  // Writes rows of `columns` values.
  template <typename T>
  absl::Status Write(const std::vector<T>& values, int32_t columns) {
    const auto writer = Open();
    const absl::Status status =
        writer->Append(client::MakeRowBlock(absl::Span<const T>(values), columns));
    return status.ok() ? writer->Finish() : status;
  }
  std::string Written() const { return folder_.Read("out.copy"); }

  TempFolder folder_;
};

TEST_F(CopyWriterTest, WritesALinePerRowWithoutAHeader) {
  ASSERT_TRUE(Write<float>({0.1f, 1.0f / 3, -0.0f, 1e-38f}, 2).ok());
  EXPECT_EQ(Written(), "[0.1,0.33333334]\n[-0,1e-38]\n");
}

// pgvector reads each number with strtof.
TEST_F(CopyWriterTest, AnyFiniteFloat32ReadsBackWithItsBits) {
  std::mt19937 random(1);
  std::vector<float> values;
  while (values.size() < 100'000) {
    const auto bits = static_cast<uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) values.push_back(value);
  }
  ASSERT_TRUE(Write(values, 10).ok());
  size_t next = 0;
  const std::string text = Written();
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ASSERT_TRUE(absl::ConsumePrefix(&line, "[") && absl::ConsumeSuffix(&line, "]"));
    for (const absl::string_view number : absl::StrSplit(line, ',')) {
      const float value = std::strtof(std::string(number).c_str(), nullptr);
      ASSERT_EQ(std::memcmp(&value, &values[next++], sizeof(value)), 0) << number;
    }
  }
  EXPECT_EQ(next, values.size());
}

TEST_F(CopyWriterTest, Float64IsRoundedToFloat32) {
  ASSERT_TRUE(Write<double>({0.1, 1e-50, 16777217}, 3).ok());
  EXPECT_EQ(Written(), "[0.1,0,16777216]\n");
}

TEST_F(CopyWriterTest, CellsComeBeforeTheVectorAndAreEscaped) {
  const auto cells = std::make_shared<PassthroughCells>();
  cells->Push({"7", "a\ttab, \\N"});
  cells->Push({"\\.", ""});
  const auto writer = Open(cells);
  const std::vector<float> values = {1, 2};
  ASSERT_TRUE(writer->Append(client::MakeRowBlock(absl::Span<const float>(values), 1)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Written(), "7\ta\\ttab, \\\\N\t[1]\n\\\\.\t\t[2]\n");
}

TEST_F(CopyWriterTest, WhatAVectorDoesNotHoldIsRefused) {
  EXPECT_TRUE(Write(std::vector<float>(kMostVectorDimensions), kMostVectorDimensions).ok());
  std::filesystem::remove(folder_.Path("out.copy"));
  const absl::Status wide =
      Write(std::vector<float>(kMostVectorDimensions + 1), kMostVectorDimensions + 1);
  EXPECT_EQ(wide.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(wide.message(),
              HasSubstr("at most 16,000 dimensions, but a row has 16,001 features"));
  EXPECT_THAT(wide.message(), HasSubstr("fewer landmarks"));
  const absl::Status large = Write<double>({0, 1e39}, 2);
  EXPECT_EQ(large.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(large.message(), HasSubstr("feature 1 of a row is 1e+39"));
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("out.copy")));
}

TEST(OutputFormatTest, FollowsTheNameOrTheExtensionOrTheInput) {
  EXPECT_EQ(*OutputFormatOf("a.copy", "", FileFormat::kNpy), OutputFormat::kCopy);
  EXPECT_EQ(*OutputFormatOf("a.COPY", "", FileFormat::kCsv), OutputFormat::kCopy);
  EXPECT_EQ(*OutputFormatOf("-", "copy", FileFormat::kCsv), OutputFormat::kCopy);
  EXPECT_EQ(*OutputFormatOf("a.copy", "npy", FileFormat::kCsv), OutputFormat::kNpy);
  EXPECT_EQ(*OutputFormatOf("-", "", FileFormat::kNpy), OutputFormat::kNpy);
  EXPECT_EQ(*OutputFormatOf("-", "", FileFormat::kSvmlight), OutputFormat::kCsv);
  EXPECT_THAT(OutputFormatOf("-", "text", FileFormat::kCsv).status().message(),
              HasSubstr("--output-format: expected csv, npy or copy, got 'text'"));
  // Features are not read in this format.
  EXPECT_FALSE(FormatOf("a.copy", "", "--format").ok());
}

}  // namespace
}  // namespace phimap::cli
