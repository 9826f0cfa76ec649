#include "server/observe/process_metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

std::map<std::string, double> Values(const prometheus::Collectable& source) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : source.Collect()) {
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetricsTest, AStatLineIsReadWhateverTheProgramIsCalled) {
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const char* name : {"phimapd", "a b", ") S 9 9", "x) (y)"}) {
    const std::string line = std::string("42 (") + name +
                             ") S 1 42 42 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 17 0 600 "
                             "123456789 2500 18446744073709551615 1 1 0 0\n";
    const std::optional<ProcessStat> stat = ParseProcessStat(line);
    ASSERT_TRUE(stat.has_value()) << line;
    EXPECT_EQ(stat->cpu_seconds, 400 / ticks);
    EXPECT_EQ(stat->threads, 17);
    EXPECT_EQ(stat->start_seconds, 600 / ticks);
    EXPECT_EQ(stat->virtual_bytes, 123456789);
    EXPECT_EQ(stat->resident_bytes, 2500 * sysconf(_SC_PAGESIZE));
  }
}

TEST(ProcessMetricsTest, AnythingElseIsNoStatLine) {
  for (const char* text : {"", "42", "42 (x", "42 (x)", "42 (x) S 1 2 3"}) {
    EXPECT_FALSE(ParseProcessStat(text).has_value()) << text;
  }
}

TEST(ProcessMetricsTest, WhatThisProcessDoesIsSeen) {
  const std::map<std::string, double> before = Values(ProcessMetrics());
  for (const char* name : {"process_cpu_seconds_total", "process_threads",
                           "process_virtual_memory_bytes", "process_resident_memory_bytes",
                           "process_start_time_seconds", "process_open_fds", "process_max_fds"}) {
    ASSERT_TRUE(before.contains(name)) << name;
  }
  EXPECT_GE(before.at("process_threads"), 1);
  EXPECT_GT(before.at("process_virtual_memory_bytes"), before.at("process_resident_memory_bytes"));
  EXPECT_GE(before.at("process_max_fds"), before.at("process_open_fds"));
  // The start time is computed from the system's boot time, which is known only to within a second.
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_LE(before.at("process_start_time_seconds"), now + 2);
  EXPECT_GT(before.at("process_start_time_seconds"), now - 24 * 3600);

  const std::vector<char> touched(64 << 20, 1);
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::map<std::string, double> after = Values(ProcessMetrics());
  close(file);
  EXPECT_GE(after.at("process_resident_memory_bytes"),
            before.at("process_resident_memory_bytes") + (32 << 20));
  EXPECT_EQ(touched[1 << 20], 1);
  EXPECT_EQ(after.at("process_open_fds"), before.at("process_open_fds") + 1);
  EXPECT_GE(after.at("process_cpu_seconds_total"), before.at("process_cpu_seconds_total"));
}

TEST(DiskMetricsTest, AFolderHasADiskAndWhatIsNotThereHasNone) {
  const std::map<std::string, double> values = Values(DiskMetrics("cache", "/tmp"));
  EXPECT_GT(values.at("phimap_cache_disk_bytes"), 0);
  EXPECT_LE(values.at("phimap_cache_disk_free_bytes"), values.at("phimap_cache_disk_bytes"));
  EXPECT_EQ(values.size(), 2);
  EXPECT_TRUE(DiskMetrics("cache", "/no such folder").Collect().empty());
}

}  // namespace
}  // namespace phimap::testing
