// The server's metrics, looked up once and counted by pointer.
//
// Every series exists from the start (a rate over a series that appears with its first error misses
// that error), except those with a mapping's name as a label, whose number is bounded
// (version_series.h, certificate_metrics.h). No other label takes its value from a request.
// docs/operations.md lists them.
//
// Thread-safety: counting from any thread. AddMethod, SetBuildInfo, SetLimits and Watch… while the
// server is being put together only.
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
#include "server/observe/kernel_metrics.h"
#include "server/observe/log.h"
#include "server/observe/registry_metrics.h"
#include "server/observe/rpc_metrics.h"
#include "server/observe/store_metrics.h"
#include "server/observe/transform_metrics.h"

namespace phimap {

// Limits of the server, to be shown beside its usage.
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

  // See RpcMetrics.
  MethodMetrics AddMethod(absl::string_view service, absl::string_view method,
                          absl::string_view type) {
    return rpc_.AddMethod(service, method, type);
  }
  // Facts about this process that do not change: the series is 1, its labels carry them.
  void SetBuildInfo(absl::string_view version, absl::string_view blas_core,
                    absl::string_view engine_target);
  void SetLimits(const ResourceLimits& limits);
  // Shows how full the file system of `folder` is.
  void WatchDisk(const std::string& folder);
  // Shows the result of `read`, which is called at each scrape and must not wait.
  void WatchGauge(std::string name, std::string help, std::function<double()> read);
  void WatchCounter(std::string name, std::string help, std::function<double()> read);
  // Shows the lines that `logger` could not write; `logger` outlives the metrics.
  void WatchLog(const Logger& logger);

  const TransformMetrics& transform() const { return transform_; }
  const RegistryMetrics& registry() const { return registry_metrics_; }
  const BuildMetrics& build() const { return build_; }
  const StoreMetrics& store() const { return store_; }
  CertificateMetrics& certificates() { return certificates_; }
  const ConnectionMetrics& connections() const { return connections_; }
  KernelMetrics& kernels() { return kernels_; }
  // Everything that the HTTP endpoint serves: these metrics and the process's.
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
  const ConnectionMetrics connections_;
  KernelMetrics kernels_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_METRICS_H_
