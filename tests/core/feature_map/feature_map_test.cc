// Uses the header for programs that embed phimap as such a program does: artifacts of release 0.1.0
// are loaded and mapped, and must give the features that the release recorded.
#include "core/feature_map/feature_map.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/corpus/corpus_inputs.h"
#include "tests/support/matchers.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

using absl::StatusCode;

std::string Folder() { return CorpusFolders().front(); }

std::string ArtifactNamed(const std::string& name) {
  return ReadCorpusFile(absl::StrCat(Folder(), "/", name, ".phimap"));
}

std::shared_ptr<const FeatureMap> MustLoad(const std::string& name) {
  return FeatureMap::Load(ArtifactNamed(name), {}).value();
}

RowsView ViewOf(const Matrix<double>& rows) {
  return {reinterpret_cast<const char*>(rows.data()), FloatType::kFloat64, rows.rows(),
          rows.cols()};
}

size_t BytesOfNumber(const FeatureMap& map) {
  return map.serving_type() == FloatType::kFloat64 ? sizeof(double) : sizeof(float);
}

std::vector<char> MustMap(const FeatureMap& map, const Matrix<double>& rows, int threads = 1) {
  std::vector<char> features(static_cast<size_t>(rows.rows() * map.output_columns()) *
                             BytesOfNumber(map));
  EXPECT_TRUE(map.Transform(ViewOf(rows), features.data(), threads).ok());
  return features;
}

// The lines of a record that begin with "features": the numbers' bits in hexadecimal.
std::vector<char> RecordedFeatures(const std::string& name, size_t bytes_of_number) {
  std::vector<char> features;
  for (const std::string& line :
       LinesOf(ReadCorpusFile(absl::StrCat(Folder(), "/", name, ".txt")))) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != "features") continue;
    while (words >> word) {
      const uint64_t bits = std::stoull(word, nullptr, 16);
      const size_t at = features.size();
      features.resize(at + bytes_of_number);
      std::memcpy(features.data() + at, &bits, bytes_of_number);  // little-endian
    }
  }
  return features;
}

TEST(FeatureMapTest, AnArtifactOfAnEarlierReleaseMapsToTheRecordedBits) {
  bool fused = false;
  for (const VectorTarget& target : SupportedVectorTargets()) fused = fused || target.fused;
  if (!fused) GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
  const CorpusInputs inputs = ReadCorpusInputs(Folder());
  for (const std::string name : {"f1-rbf", "f1-float64", "f2-rbf", "f2-float64", "f2-poly",
                                 "f2-standardize", "f3-sign", "fourier-sincos"}) {
    SCOPED_TRACE(name);
    const auto map = MustLoad(name);
    const std::vector<char> recorded = RecordedFeatures(name, BytesOfNumber(*map));
    ASSERT_FALSE(recorded.empty());
    for (const int threads : {1, 2, 7}) {
      EXPECT_EQ(MustMap(*map, inputs.rows, threads), recorded) << threads;
    }
    EXPECT_EQ(map->artifact(), ArtifactNamed(name));
    EXPECT_EQ(map->head(), nullptr);
    EXPECT_TRUE(absl::IsFailedPrecondition(map->Predict({}, ViewOf(inputs.rows)).status()));
  }
}

TEST(FeatureMapTest, ManyThreadsAndAForkedChildMapAlike) {
  const CorpusInputs inputs = ReadCorpusInputs(Folder());
  const auto map = MustLoad("f2-rbf");
  const std::vector<char> expected = MustMap(*map, inputs.rows);
  std::vector<std::thread> threads;
  for (int t = 0; t < 200; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) EXPECT_EQ(MustMap(*map, inputs.rows), expected);
    });
  }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(MustMap(*map, inputs.rows, 2) == expected ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (std::thread& thread : threads) thread.join();
}

TEST(FeatureMapTest, RowsThatDoNotFitAreNamedByTheirPlace) {
  const CorpusInputs inputs = ReadCorpusInputs(Folder());
  const auto map = MustLoad("f2-rbf");
  std::vector<float> features(static_cast<size_t>(2 * map->output_columns()));
  const Matrix<double> narrow(2, map->input_columns() - 1);
  EXPECT_TRUE(absl::IsInvalidArgument(map->Transform(ViewOf(narrow), features.data())));
  Matrix<double> broken(2, map->input_columns());
  broken(1, 2) = std::numeric_limits<double>::quiet_NaN();
  const absl::Status status = map->Transform(ViewOf(broken), features.data());
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(FieldOf(status), "examples.dense.rows[1].columns[2]");
}

TEST(FeatureMapTest, WhatIsNotAWholeArtifactOrTooLargeOrRemoteIsRefused) {
  const std::string whole = ArtifactNamed("f2-rbf");
  EXPECT_THAT(FeatureMap::Load(whole, {.max_bytes = static_cast<int64_t>(whole.size())}).status(),
              IsError(StatusCode::kResourceExhausted, "ARTIFACT_TOO_LARGE"));
  for (const size_t size : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_FALSE(FeatureMap::Load(whole.substr(0, size), {}).ok()) << size;
  }
  for (size_t at = 0; at < whole.size(); at += 97) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(FeatureMap::Load(damaged, {}).ok()) << at;
  }
  EXPECT_THAT(FeatureMap::Load(ArtifactNamed("f2-gram"), {}).status(),
              IsError(StatusCode::kFailedPrecondition, "KERNEL_REMOTE"));
  EXPECT_TRUE(FeatureMap::Load(ArtifactNamed("f2-gram"), {.kernel_values = true}).ok());
}

}  // namespace
}  // namespace phimap::testing
