// The server's metrics. Each series is looked up once and then counted through a pointer.
//
// Every series exists from the start. If a series appeared only with its first error, a rate over
// the series would miss that error. Only series with a mapping's name as a label appear later.
// Their number is bounded (version_series.h, certificate_metrics.h, drift_metrics.h), and no other
// label takes its value from a request. docs/operations/watch.md lists the metrics.
//
// Thread-safety: any thread may count. AddMethod, SetBuildInfo, SetLimits and Watch… may be called
// only during startup.
#ifndef PHIMAP_SERVER_OBSERVE_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "prometheus/collectable.h"
#include "prometheus/registry.h"
#include "server/observe/build_metrics.h"
#include "server/observe/certificate_metrics.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/drift_metrics.h"
#include "server/observe/kernel_metrics.h"
#include "server/observe/log.h"
#include "server/observe/registry_metrics.h"
#include "server/observe/rpc_metrics.h"
#include "server/observe/store_metrics.h"
#include "server/observe/transform_metrics.h"

namespace phimap {

// Limits of the server, shown next to its usage.
struct ResourceLimits {
  int compute_threads = 0;
  int64_t memory_bytes = 0;
  int64_t live_bytes = 0;
  int64_t build_memory_bytes = 0;
  int builds = 0;
};

class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // See RpcMetrics::AddMethod.
  MethodMetrics AddMethod(absl::string_view service, absl::string_view method,
                          absl::string_view type) {
    return rpc_.AddMethod(service, method, type);
  }
  // Shows constant facts about this process as labels of a series whose value is 1.
  void SetBuildInfo(absl::string_view version, absl::string_view blas_core,
                    absl::string_view engine_target);
  void SetLimits(const ResourceLimits& limits);
  // Shows how full the file system of `folder` is.
  void WatchDisk(const std::string& folder);
  // Shows the result of `read`, which is called at each scrape and must not block.
  void WatchGauge(std::string name, std::string help, std::function<double()> read);
  void WatchCounter(std::string name, std::string help, std::function<double()> read);
  // Shows the number of lines that `logger` dropped. `logger` must outlive the metrics.
  void WatchLog(const Logger& logger);

  const TransformMetrics& transform() const { return transform_; }
  const RegistryMetrics& registry() const { return registry_metrics_; }
  const BuildMetrics& build() const { return build_; }
  const StoreMetrics& store() const { return store_; }
  CertificateMetrics& certificates() { return certificates_; }
  DriftMetrics& drift() { return drift_; }
  const ConnectionMetrics& connections() const { return connections_; }
  KernelMetrics& kernels() { return kernels_; }
  // Returns everything that the HTTP endpoint serves: these metrics and those of the process.
  std::shared_ptr<const prometheus::Collectable> collectable() const;

 private:
  class Sources;

  const std::shared_ptr<prometheus::Registry> registry_;
  const std::shared_ptr<Sources> sources_;
  RpcMetrics rpc_;
  const TransformMetrics transform_;
  const RegistryMetrics registry_metrics_;
  const BuildMetrics build_;
  const StoreMetrics store_;
  CertificateMetrics certificates_;
  DriftMetrics drift_;
  const ConnectionMetrics connections_;
  KernelMetrics kernels_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_METRICS_H_
