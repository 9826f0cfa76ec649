#include "server/observe/metrics.h"

#include <iterator>
#include <utility>

#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "server/observe/log_metrics.h"
#include "server/observe/process_metrics.h"
#include "server/observe/read_metrics.h"
#include "server/observe/single_series.h"

namespace phimap {

// Combines several sources into one.
class Metrics::Sources final : public prometheus::Collectable {
 public:
  void Add(std::shared_ptr<const prometheus::Collectable> source) {
    sources_.push_back(std::move(source));
  }
  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> all;
    for (const auto& source : sources_) {
      std::vector<prometheus::MetricFamily> some = source->Collect();
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
  }

 private:
  std::vector<std::shared_ptr<const prometheus::Collectable>> sources_;
};

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      sources_(std::make_shared<Sources>()),
      rpc_(*registry_),
      transform_(*registry_),
      registry_metrics_(*registry_),
      build_(*registry_),
      store_(*registry_),
      certificates_(*registry_),
      drift_(*registry_),
      connections_(*registry_),
      kernels_(*registry_) {
  sources_->Add(registry_);
  sources_->Add(std::make_shared<ProcessMetrics>());
}

std::shared_ptr<const prometheus::Collectable> Metrics::collectable() const { return sources_; }

void Metrics::SetBuildInfo(absl::string_view version, absl::string_view blas_core,
                           absl::string_view engine_target) {
  prometheus::BuildGauge()
      .Name("phimap_info")
      .Help("Always 1; the labels are the version of the server and its vector unit.")
      .Register(*registry_)
      .Add({{"version", std::string(version)},
            {"blas_core", std::string(blas_core)},
            {"engine_target", std::string(engine_target)}})
      .Set(1);
}

void Metrics::SetLimits(const ResourceLimits& limits) {
  const auto show = [this](const char* name, const char* help, double value) {
    OneGauge(*registry_, name, help)->Set(value);
  };
  show("phimap_compute_threads", "Threads of the compute pool.", limits.compute_threads);
  show("phimap_request_memory_limit_bytes", "Limit of phimap_request_memory_bytes.",
       static_cast<double>(limits.memory_bytes));
  show("phimap_live_version_limit_bytes", "Limit of phimap_live_version_bytes.",
       static_cast<double>(limits.live_bytes));
  show("phimap_build_memory_limit_bytes", "Limit of phimap_build_memory_bytes.",
       static_cast<double>(limits.build_memory_bytes));
  show("phimap_builds_limit", "Maximum number of unfinished builds.", limits.builds);
}

void Metrics::WatchDisk(const std::string& folder) {
  sources_->Add(std::make_shared<DiskMetrics>(folder));
}

void Metrics::WatchGauge(std::string name, std::string help, std::function<double()> read) {
  sources_->Add(std::make_shared<ReadMetric>(std::move(name), std::move(help),
                                             prometheus::MetricType::Gauge, std::move(read)));
}

void Metrics::WatchCounter(std::string name, std::string help, std::function<double()> read) {
  sources_->Add(std::make_shared<ReadMetric>(std::move(name), std::move(help),
                                             prometheus::MetricType::Counter, std::move(read)));
}

void Metrics::WatchLog(const Logger& logger) {
  sources_->Add(std::make_shared<LogMetrics>(logger));
}

}  // namespace phimap
