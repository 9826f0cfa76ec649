// Metrics whose value is read from its source at each scrape.
#ifndef PHIMAP_SERVER_OBSERVE_READ_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_READ_METRICS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace phimap {

class ReadMetric final : public prometheus::Collectable {
 public:
  // `read` is called on the thread that serves scrapes, and must not block.
  ReadMetric(std::string name, std::string help, prometheus::MetricType type,
             std::function<double()> read)
      : name_(std::move(name)), help_(std::move(help)), type_(type), read_(std::move(read)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    prometheus::ClientMetric metric;
    if (type_ == prometheus::MetricType::Counter) metric.counter.value = read_();
    if (type_ == prometheus::MetricType::Gauge) metric.gauge.value = read_();
    return {{name_, help_, type_, {metric}}};
  }

 private:
  const std::string name_;
  const std::string help_;
  const prometheus::MetricType type_;
  const std::function<double()> read_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_READ_METRICS_H_
