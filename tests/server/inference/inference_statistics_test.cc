#include "gtest/gtest.h"
#include "server/inference/inference_models.h"

namespace phimap::testing {
namespace {

TEST(InferenceStatisticsTest, CountsAndTimesStandInTheFieldsThatClientsRead) {
  VersionCounts counts{.mapping = "letters", .number = 7};
  counts.answered = {11, absl::Milliseconds(5)};
  counts.failed = {2, absl::Microseconds(3)};
  counts.queued = {12, absl::Nanoseconds(4)};
  counts.computed = {11, absl::Microseconds(40)};
  counts.rows = 70;
  counts.batches = 9;
  counts.last_request = absl::FromUnixMillis(1'700'000'000'123);
  counts.memory_bytes = 1 << 20;
  const inference::ModelStatistics statistics = ModelStatisticsOf(counts);
  EXPECT_EQ(statistics.name(), "letters");
  EXPECT_EQ(statistics.version(), "7");
  EXPECT_EQ(statistics.last_inference(), 1'700'000'000'123u);
  EXPECT_EQ(statistics.inference_count(), 70u);
  EXPECT_EQ(statistics.execution_count(), 9u);
  const inference::InferStatistics& requests = statistics.inference_stats();
  EXPECT_EQ(requests.success().count(), 11u);
  EXPECT_EQ(requests.success().ns(), 5'000'000u);
  EXPECT_EQ(requests.fail().count(), 2u);
  EXPECT_EQ(requests.fail().ns(), 3'000u);
  EXPECT_EQ(requests.queue().count(), 12u);
  EXPECT_EQ(requests.queue().ns(), 4u);
  EXPECT_EQ(requests.compute_infer().count(), 11u);
  EXPECT_EQ(requests.compute_infer().ns(), 40'000u);
  ASSERT_EQ(statistics.memory_usage_size(), 1);
  EXPECT_EQ(statistics.memory_usage(0).type(), "CPU");
  EXPECT_EQ(statistics.memory_usage(0).byte_size(), 1u << 20);
}

TEST(InferenceStatisticsTest, AVersionThatWasNotAskedHasNoLastRequest) {
  VersionCounts counts{.mapping = "letters", .number = 1};
  const inference::ModelStatistics statistics = ModelStatisticsOf(counts);
  EXPECT_EQ(statistics.last_inference(), 0u);
  EXPECT_EQ(statistics.inference_stats().success().count(), 0u);
}

}  // namespace
}  // namespace phimap::testing
