// Metrics with figures from the certificates of the versions that aliases point to. If an alias
// moves to a worse version, the metrics show this next to the version's traffic.
//
// Names come from clients, so the number of series must be bounded: at most kMaxShown aliases have
// series, and further aliases are only counted. When an alias with series is deleted, its place is
// free. It is taken by the next alias that moves or whose version is loaded. Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_CERTIFICATE_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_CERTIFICATE_METRICS_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace phimap {

// The figures of one version. A figure that does not apply to the version or was not measured is
// absent and has no series.
struct CertificateFigures {
  std::optional<double> landmarks;
  std::optional<double> rank;
  // Share of the trace of the landmarks' Gram matrix that is lost, and residual mass of the
  // held-out rows.
  std::optional<double> trace_residual;
  std::optional<double> held_out_trace_residual;
  // Kernel errors are divided by the largest K(x, x), and serving errors by the largest ‖F(x)‖.
  std::optional<double> kernel_error_mean;
  std::optional<double> kernel_error_max;
  std::optional<double> serving_error_mean;
  std::optional<double> serving_error_max;
  // Mean of ‖F(x)‖² over the held-out rows x, to compare with the mean over served rows.
  std::optional<double> mean_squared_norm;
};

class CertificateMetrics {
 public:
  static constexpr int kMaxShown = 100;

  explicit CertificateMetrics(prometheus::Registry& registry);
  CertificateMetrics(const CertificateMetrics&) = delete;
  CertificateMetrics& operator=(const CertificateMetrics&) = delete;

  // Shows that the alias points to `version`, whose certificate has these figures.
  void Show(absl::string_view mapping, absl::string_view alias, int64_t version,
            const CertificateFigures& figures);
  // Removes the alias's series. Called when the alias was deleted, or its version's certificate is
  // not known.
  void Hide(absl::string_view mapping, absl::string_view alias);

 private:
  static constexpr int kFigures = 9;
  using Key = std::pair<std::string, std::string>;
  // A figure's family and its label "stat". An empty `stat` means no such label.
  struct Figure {
    prometheus::Family<prometheus::Gauge>* family;
    const char* stat;
    std::optional<double> CertificateFigures::*value;
  };
  // Null where the figure is absent.
  using Shown = std::array<prometheus::Gauge*, kFigures>;

  static std::array<Figure, kFigures> Families(prometheus::Registry& registry);
  void Remove(const Shown& shown) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::array<Figure, kFigures> figures_;
  prometheus::Counter* const not_shown_;
  Mutex mutex_;
  std::map<Key, Shown> shown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_CERTIFICATE_METRICS_H_
