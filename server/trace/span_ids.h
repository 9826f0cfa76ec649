// The ids of traces and spans, and the choice of the traces that are recorded.
#ifndef PHIMAP_SERVER_TRACE_SPAN_IDS_H_
#define PHIMAP_SERVER_TRACE_SPAN_IDS_H_

#include <array>
#include <cstdint>

namespace phimap {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

// Return random ids that are not zero. Trace ids of one process are all different, and its span ids
// as good as. Thread-safe; some 30 ns.
TraceId NewTraceId();
SpanId NewSpanId();

// Whether a trace is one of the part `ratio` that is recorded. Depends on the id alone, by the rule
// of OpenTelemetry's TraceIdRatioBased, so servers with the same ratio choose the same traces.
// Pure.
bool IsChosen(const TraceId& id, double ratio);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRACE_SPAN_IDS_H_
