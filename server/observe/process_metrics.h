// The operating system's figures about this process, read at each scrape. The names are those that
// all Prometheus client libraries use.
#ifndef PHIMAP_SERVER_OBSERVE_PROCESS_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_PROCESS_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace phimap {

// The part of /proc/PID/stat that is shown.
struct ProcessStat {
  double cpu_seconds = 0;  // user and system
  int64_t threads = 0;
  double start_seconds = 0;  // since the system booted
  int64_t virtual_bytes = 0;
  int64_t resident_bytes = 0;
};

// Parses a line of /proc/PID/stat, or returns nullopt if `text` is not such a line. The program's
// name in it may contain any characters, even brackets and blanks.
std::optional<ProcessStat> ParseProcessStat(absl::string_view text);

// The figures of this process. Figures that cannot be read are omitted.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

// The file system that holds a folder: its size and its free space. `whose` is what the folder
// contains, "store" or "cache", and a part of the metrics' names.
class DiskMetrics final : public prometheus::Collectable {
 public:
  DiskMetrics(std::string whose, std::string folder)
      : whose_(std::move(whose)), folder_(std::move(folder)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::string whose_;
  const std::string folder_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_PROCESS_METRICS_H_
