// Traces of calls: which are recorded, and where they are sent.
//
// The decision is made where a trace begins: by the caller, if it sends traceparent, and else here,
// for the part of all calls that --trace_ratio says.
#ifndef PHIMAP_SERVER_TRACE_TRACER_H_
#define PHIMAP_SERVER_TRACE_TRACER_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/trace_parent.h"
#include "server/trace/collector_client.h"
#include "server/trace/span.h"
#include "server/trace/span_exporter.h"

namespace phimap {

// Thread-safe. It must outlive its spans.
class Tracer {
 public:
  struct Options {
    // Part of the traces that begin here which is recorded, 0 to 1.
    double ratio = 0;
    // Version of phimapd.
    std::string version;
    SpanExporter::Options exporter;
  };

  // A tracer that records nothing.
  Tracer() = default;
  // Starts the thread that sends spans to `collector`; if it is null, nothing is recorded.
  // `metrics` and `logger` must outlive the tracer.
  Tracer(std::unique_ptr<CollectorClient> collector, const Options& options,
         const TraceMetrics& metrics, const Logger& logger);

  // Begins the first span that this process has of a trace. `remote`: where the caller's trace
  // stands, or null; if the caller does not record its trace, neither does the span. `start`: a
  // time of SteadyNow.
  Span Start(absl::string_view name, SpanKind kind, const TraceParent* remote) const;
  Span Start(absl::string_view name, SpanKind kind, const TraceParent* remote,
             absl::Time start) const;

 private:
  const double ratio_ = 0;
  // Null if nothing is recorded.
  const std::unique_ptr<SpanExporter> exporter_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRACE_TRACER_H_
