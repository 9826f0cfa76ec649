#include "server/observe/kernel_metrics.h"

#include <string>

#include "server/observe/latency_buckets.h"

namespace phimap {

KernelMetrics::KernelMetrics(prometheus::Registry& registry)
    : ended_(prometheus::BuildCounter()
                 .Name("phimap_kernel_calls_ended_total")
                 .Help("Completed calls to kernel services, by service and code.")
                 .Register(registry)),
      seconds_(prometheus::BuildHistogram()
                   .Name("phimap_kernel_call_seconds")
                   .Help("Duration of calls to kernel services in seconds, retries included.")
                   .Register(registry)),
      under_way_(prometheus::BuildGauge()
                     .Name("phimap_kernel_calls_under_way")
                     .Help("Calls to kernel services without an answer yet.")
                     .Register(registry)),
      values_(prometheus::BuildCounter()
                  .Name("phimap_kernel_values_total")
                  .Help("Kernel values received from services.")
                  .Register(registry)),
      examples_sent_(prometheus::BuildCounter()
                         .Name("phimap_kernel_examples_sent_total")
                         .Help("Times that the column examples of a block were sent in full, "
                               "because the service did not have them.")
                         .Register(registry)) {}

KernelServiceMetrics KernelMetrics::AddService(absl::string_view name) {
  const prometheus::Labels labels = {{"service", std::string(name)}};
  KernelServiceMetrics service;
  for (int i = 0; i < kStatusCodes; ++i) {
    prometheus::Labels of_code = labels;
    of_code["code"] = std::string(CodeLabel(static_cast<absl::StatusCode>(i)));
    service.ended[i] = &ended_.Add(of_code);
  }
  service.seconds = &seconds_.Add(labels, LongLatencyBuckets());
  service.under_way = &under_way_.Add(labels);
  service.values = &values_.Add(labels);
  service.examples_sent = &examples_sent_.Add(labels);
  return service;
}

}  // namespace phimap
