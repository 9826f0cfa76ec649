#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/sweep_points.h"
#include "tests/client/temp_file.h"

namespace phimap::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SweepPoint SomePoint() {
  return {.key = {"f2(landmarks=100, policy=uniform)", "rbf(gamma=\"scale\")", 7, "linear_svm(C=1)",
                  "ab12", true},
          .mapping = "f2",
          .landmarks = 100,
          .policy = "uniform",
          .output_columns = 99,
          .error = 0.1,
          .error_standard_error = 1.0 / 3,
          .error_low = 0.0625,
          .error_high = 0.125,
          .kernel_error_mean = 1e-9,
          .microseconds_per_row = 2.25,
          .rows = 20'000,
          .tested_rows = 6'000,
          .digest = "cd34"};
}

TEST(SweepPointsTest, ALineReadsBackAsItsPoint) {
  const std::string line = SweepLine(SomePoint());
  EXPECT_THAT(line,
              ::testing::StartsWith("{\"format\": \"phimap-sweep-1\", \"spec\": \"f2(landmarks="));
  EXPECT_THAT(line, HasSubstr("\"accuracy\": 0.9, \"kernel_error_mean\": 1e-09"));
  const absl::StatusOr<SweepPoint> back = ParseSweepLine(line);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->key, SomePoint().key);
  EXPECT_EQ(SweepLine(*back), line);
  SweepPoint bare = SomePoint();
  bare.landmarks.reset();
  bare.policy.reset();
  bare.kernel_error_mean.reset();
  bare.error_low.reset();
  EXPECT_THAT(SweepLine(bare), HasSubstr("\"error_low\": null, \"error_high\": 0.125"));
  EXPECT_THAT(SweepLine(bare), HasSubstr("\"landmarks\": null, \"policy\": null"));
  EXPECT_EQ(SweepLine(*ParseSweepLine(SweepLine(bare))), SweepLine(bare));
}

TEST(SweepPointsTest, ALineOfAnotherFormatIsRefusedAndUnknownNamesAreNot) {
  for (const char* line : {"", "[]", "{}", "{\"format\": \"phimap-sweep-2\"}",
                           "{\"format\":", "{\"format\": \"phimap-sweep-1\", \"spec\": 3}"}) {
    EXPECT_FALSE(ParseSweepLine(line).ok()) << line;
  }
  std::string line = SweepLine(SomePoint());
  line.insert(1, "\"of_another_release\": [1, {}], ");
  EXPECT_TRUE(ParseSweepLine(line).ok());
}

TEST(SweepPointsTest, MappingsAreTakenWithEachOfTheParameters) {
  EXPECT_THAT(
      *SweepSpecs("f1,f2", "100,300", "", "uniform,rpcholesky"),
      ElementsAre("f1(landmarks=100, policy=uniform)", "f1(landmarks=100, policy=rpcholesky)",
                  "f1(landmarks=300, policy=uniform)", "f1(landmarks=300, policy=rpcholesky)",
                  "f2(landmarks=100, policy=uniform)", "f2(landmarks=100, policy=rpcholesky)",
                  "f2(landmarks=300, policy=uniform)", "f2(landmarks=300, policy=rpcholesky)"));
  EXPECT_THAT(*SweepSpecs("f3, fourier(dimensions=64, x=1)", " 10", "5", ""),
              ElementsAre("f3(landmarks=10, dimensions=5)", "fourier(dimensions=64, x=1)"));
  EXPECT_FALSE(SweepSpecs(" , ", "10", "", "").ok());
}

TEST(SweepPointsTest, AFileIsReadUpToItsLastWholeLineAndGoesOnThere) {
  TempFolder folder;
  const std::string path = folder.Path("sweep.jsonl");
  EXPECT_THAT(*ReadSweep(path), IsEmpty());
  ASSERT_TRUE(AppendToSweep(path, SomePoint()).ok());
  const std::string line = folder.Read("sweep.jsonl");
  folder.Write("sweep.jsonl", line + line.substr(0, 40));  // as after a power cut
  EXPECT_EQ(ReadSweep(path)->size(), 1);
  ASSERT_TRUE(AppendToSweep(path, SomePoint()).ok());
  EXPECT_EQ(folder.Read("sweep.jsonl"), line + line);
  folder.Write("sweep.jsonl", line + "no point\n");
  EXPECT_THAT(ReadSweep(path).status().message(),
              HasSubstr("sweep.jsonl, line 2: expected a JSON"));
}

// The expected digest was computed with Python: hashlib.sha256(b"u\0" + struct.pack("<2d", 1, 2.5)
// + b"v\0" + struct.pack("<2d", 0, -1)).hexdigest()
TEST(SweepDataTest, RowsAreKnownByTheirLabelsAndNumbersInWhateverFile) {
  TempFolder folder;
  client::CancelToken cancel;
  const auto digest = [&](const std::string& name, const std::string& text, InputArguments input) {
    input.paths = {folder.Write(name, text)};
    auto rows = OpenLabeledRows(*WithFiles(input), cancel);
    EXPECT_TRUE(rows.ok()) << rows.status();
    const absl::StatusOr<SweepData> data = ReadSweepData(**rows);
    EXPECT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->timed.rows(), 2);
    return data->digest;
  };
  const std::string expected = "6d7c4ecfe4ce4e5e40256b58eb2a534816f498e58a0e13600745124d8e8652ff";
  EXPECT_EQ(digest("r.csv", "a,y,b\n1,u,2.5\n0,v,-1\n", {.choice = {.label = "y"}}), expected);
  EXPECT_EQ(digest("r.svm", "u 1:1 2:2.5\nv 2:-1\n", {}), expected);
  EXPECT_NE(digest("s.csv", "a,y,b\n1,u,2.5\n0,u,-1\n", {.choice = {.label = "y"}}), expected);
}

}  // namespace
}  // namespace phimap::cli
