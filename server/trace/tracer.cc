#include "server/trace/tracer.h"

#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "core/thread/steady_time.h"
#include "server/trace/span_ids.h"

namespace phimap {
namespace {

constexpr char kServiceName[] = "phimapd";

void AddAttribute(absl::string_view key, std::string value, opentelemetry::Resource& resource) {
  opentelemetry::KeyValue& attribute = *resource.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_string_value(std::move(value));
}

// Describes this process by OpenTelemetry's conventions. The id of an instance is made anew at each
// start, as they recommend.
opentelemetry::Resource ThisProcess(const std::string& version) {
  opentelemetry::Resource resource;
  AddAttribute("service.name", kServiceName, resource);
  AddAttribute("service.version", version, resource);
  const TraceId id = NewTraceId();
  AddAttribute("service.instance.id",
               absl::BytesToHexString(
                   absl::string_view(reinterpret_cast<const char*>(id.data()), id.size())),
               resource);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) {
    AddAttribute("host.name", host.data(), resource);
  }
  return resource;
}

// What made the spans.
opentelemetry::InstrumentationScope ThisScope(const std::string& version) {
  opentelemetry::InstrumentationScope scope;
  scope.set_name(kServiceName);
  scope.set_version(version);
  return scope;
}

}  // namespace

Tracer::Tracer(std::unique_ptr<CollectorClient> collector, const Options& options,
               const TraceMetrics& metrics, const Logger& logger)
    : ratio_(options.ratio),
      exporter_(collector == nullptr
                    ? nullptr
                    : std::make_unique<SpanExporter>(
                          std::move(collector), ThisProcess(options.version),
                          ThisScope(options.version), options.exporter, metrics, logger)) {}

Span Tracer::Start(absl::string_view name, SpanKind kind, const TraceParent* remote) const {
  return exporter_ == nullptr ? Span() : Start(name, kind, remote, SteadyNow());
}

Span Tracer::Start(absl::string_view name, SpanKind kind, const TraceParent* remote,
                   absl::Time start) const {
  if (exporter_ == nullptr) return Span();
  TraceParent place{};
  if (remote != nullptr) {
    if (!remote->sampled()) return Span();
    place = *remote;
  } else {
    place.trace_id = NewTraceId();
    if (!IsChosen(place.trace_id, ratio_)) return Span();
    place.flags = TraceParent::kSampled | TraceParent::kRandom;
  }
  place.parent_id = NewSpanId();
  const SpanContext context(*exporter_, place, absl::Now() - SteadyNow());
  return Span::Begin(context, remote, /*remote=*/remote != nullptr, name, kind, start);
}

}  // namespace phimap
