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
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

SweepPoint SomePoint() {
  return {.key = {"f2(landmarks=100, policy=uniform)", "rbf(gamma=\"scale\")", 7, "linear_svm(C=1)",
                  "ab12", true},
          .family = "f2",
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
  EXPECT_THAT(line, StartsWith("{\"format\": \"phimap-sweep-1\", \"spec\": \"f2(landmarks="));
  EXPECT_THAT(line, HasSubstr("\"accuracy\": 0.9, \"kernel_error_mean\": 1e-09"));
  const SweepPoint back = ParseSweepLine(line).value();
  EXPECT_EQ(back.key, SomePoint().key);
  EXPECT_EQ(SweepLine(back), line);
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

TEST(SweepPointsTest, ALineOfAnEarlierReleaseReadsBack) {
  std::string line = SweepLine(SomePoint());
  line.replace(line.find("\"family\""), 8, "\"mapping\"");
  EXPECT_EQ(SweepLine(*ParseSweepLine(line)), SweepLine(SomePoint()));
}

google::protobuf::RepeatedPtrField<v1::Capability> Families() {
  const std::vector<std::vector<std::string>> described = {{"span", "landmarks", "policy"},
                                                           {"short", "landmarks", "dimensions"},
                                                           {"waves", "dimensions"}};
  google::protobuf::RepeatedPtrField<v1::Capability> families;
  for (const std::vector<std::string>& words : described) {
    v1::Capability& family = *families.Add();
    family.set_name(words[0]);
    for (size_t i = 1; i < words.size(); ++i) family.add_parameters()->set_name(words[i]);
  }
  return families;
}

TEST(SweepPointsTest, EachFamilyIsCombinedWithTheParametersThatItHas) {
  EXPECT_THAT(
      *SweepSpecs("span, short,waves,waves(dimensions=9),span(landmarks=1, x=1)",
                  {{"landmarks", "100, 300"}, {"dimensions", "5,9"}, {"policy", "near"}},
                  Families()),
      ElementsAre("span(landmarks=100, policy=near)", "span(landmarks=300, policy=near)",
                  "short(landmarks=100, dimensions=5)", "short(landmarks=100, dimensions=9)",
                  "short(landmarks=300, dimensions=5)", "short(landmarks=300, dimensions=9)",
                  "waves(dimensions=5)", "waves(dimensions=9)", "span(landmarks=1, x=1)"));
  EXPECT_THAT(*SweepSpecs("waves", {{"landmarks", ""}}, Families()), ElementsAre("waves()"));
}

TEST(SweepPointsTest, WhatNoFamilyTakesIsRefusedByName) {
  const auto refusal = [](const std::string& families, const std::string& landmarks) {
    return SweepSpecs(families, {{"landmarks", landmarks}}, Families()).status().ToString();
  };
  EXPECT_THAT(refusal("waves, span(landmarks=2)", "100"), HasSubstr("--landmarks: no family of"));
  EXPECT_THAT(refusal("wave", ""), HasSubstr("no family 'wave'; expected span, short, waves"));
  EXPECT_THAT(refusal(" , ", ""), HasSubstr("--spec: expected specs"));
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
    auto rows = OpenLabeledRows(*WithFiles(input), cancel).value();
    const SweepData data = ReadSweepData(*rows).value();
    EXPECT_EQ(data.timed.rows(), 2);
    return data.digest;
  };
  const std::string expected = "6d7c4ecfe4ce4e5e40256b58eb2a534816f498e58a0e13600745124d8e8652ff";
  EXPECT_EQ(digest("r.csv", "a,y,b\n1,u,2.5\n0,v,-1\n", {.choice = {.label = "y"}}), expected);
  EXPECT_EQ(digest("r.svm", "u 1:1 2:2.5\nv 2:-1\n", {}), expected);
  EXPECT_NE(digest("s.csv", "a,y,b\n1,u,2.5\n0,u,-1\n", {.choice = {.label = "y"}}), expected);
}

}  // namespace
}  // namespace phimap::cli
