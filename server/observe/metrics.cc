#include "server/observe/metrics.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/error.h"
#include "prometheus/collectable.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/metric_family.h"
#include "server/observe/log.h"
#include "server/observe/process_metrics.h"
#include "server/observe/series.h"

namespace phimap {

namespace {

// Metrics whose value is read from its source at each scrape.
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

// A gauge with one label, whose value and label are read when metrics are collected.
class LabeledMetric final : public prometheus::Collectable {
 public:
  LabeledMetric(std::string name, std::string help, std::string label,
                std::function<std::optional<Metrics::Labeled>()> read)
      : name_(std::move(name)),
        help_(std::move(help)),
        label_(std::move(label)),
        read_(std::move(read)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    const std::optional<Metrics::Labeled> found = read_();
    if (!found.has_value()) return {};
    prometheus::ClientMetric metric;
    metric.label.push_back({label_, found->label});
    metric.gauge.value = found->value;
    return {{name_, help_, prometheus::MetricType::Gauge, {metric}}};
  }

 private:
  const std::string name_;
  const std::string help_;
  const std::string label_;
  const std::function<std::optional<Metrics::Labeled>()> read_;
};

// Metrics of the log lines that were dropped.
//
// Reads the counts from `logger` at each scrape. `logger` must outlive this object.
class LogMetrics final : public prometheus::Collectable {
 public:
  explicit LogMetrics(const Logger& logger) : logger_(logger) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Logger& logger_;
};

std::vector<prometheus::MetricFamily> LogMetrics::Collect() const {
  prometheus::MetricFamily family{"phimap_log_lines_dropped_total",
                                  "Log lines that were not written, by reason.",
                                  prometheus::MetricType::Counter,
                                  {}};
  const auto add = [&family](const char* reason, int64_t count) {
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    metric.label.push_back({"reason", reason});
    metric.counter.value = static_cast<double>(count);
  };
  const LogDrops drops = logger_.drops();
  add("queue_full", drops.queue_full);
  add("rate", drops.rate);
  add("write_failed", drops.write_failed);
  return {family};
}

using prometheus::BuildCounter;
using prometheus::BuildHistogram;

constexpr absl::string_view kCodeLabels[kStatusCodes] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

constexpr absl::string_view kRefusalReasons[] = {reason::kAliasLimitReached,
                                                 reason::kArtifactRemoved,
                                                 reason::kArtifactTooLarge,
                                                 reason::kAuditLogNotWritable,
                                                 reason::kBuildLimitReached,
                                                 reason::kBuildMemoryFull,
                                                 reason::kCallLimitReached,
                                                 reason::kCallerRateReached,
                                                 reason::kCommitInDoubt,
                                                 reason::kCommitLocalOnly,
                                                 reason::kDatabaseBusy,
                                                 reason::kDatabaseExhausted,
                                                 reason::kDatabaseReadOnly,
                                                 reason::kDatabaseUnavailable,
                                                 reason::kDiskFull,
                                                 reason::kEvaluationLimitReached,
                                                 reason::kExportLimitReached,
                                                 reason::kFileIoFailed,
                                                 reason::kFilePermissionDenied,
                                                 reason::kFileSystemReadOnly,
                                                 reason::kHeadersTooLarge,
                                                 reason::kImportLimitReached,
                                                 reason::kKernelQueueFull,
                                                 reason::kKernelServiceTimedOut,
                                                 reason::kKernelServiceUnavailable,
                                                 reason::kLiveVersionsFull,
                                                 reason::kMachineMemoryFull,
                                                 reason::kMessageTooLarge,
                                                 reason::kOpenFileLimitReached,
                                                 reason::kProjectionTooLarge,
                                                 reason::kQueueFull,
                                                 reason::kRequestMemoryFull,
                                                 reason::kRevisionNotReached,
                                                 reason::kSampleTooLarge,
                                                 reason::kServerShuttingDown,
                                                 reason::kStoreShareReached,
                                                 reason::kTrainingDiskFull};

prometheus::Family<prometheus::Counter>& Counters(prometheus::Registry& registry, const char* name,
                                                  const char* help) {
  return BuildCounter().Name(name).Help(help).Register(registry);
}

}  // namespace

absl::string_view CodeLabel(absl::StatusCode code) {
  const int index = static_cast<int>(code);
  return index >= 0 && index < kStatusCodes ? kCodeLabels[index] : kCodeLabels[2];
}

absl::Span<const absl::string_view> RefusalReasons() { return kRefusalReasons; }

RefusalCounters::RefusalCounters(prometheus::Family<prometheus::Counter>& family,
                                 const std::string& service)
    : other_(&family.Add({{"grpc_service", service}, {"reason", "other"}})) {
  for (const absl::string_view reason : kRefusalReasons) {
    by_reason_[reason] =
        &family.Add({{"grpc_service", service}, {"reason", absl::AsciiStrToLower(reason)}});
  }
}

void RefusalCounters::Count(const absl::Status& status) const {
  if (status.code() != absl::StatusCode::kResourceExhausted &&
      status.code() != absl::StatusCode::kUnavailable &&
      status.code() != absl::StatusCode::kFailedPrecondition) {
    return;
  }
  const ErrorDetail detail = DetailOf(status).value_or(ErrorDetail());
  // Other preconditions are the caller's.
  if (status.code() == absl::StatusCode::kFailedPrecondition &&
      detail.reason != reason::kFilePermissionDenied &&
      detail.reason != reason::kFileSystemReadOnly) {
    return;
  }
  const auto found = by_reason_.find(detail.reason);
  (found == by_reason_.end() ? other_ : found->second)->Increment();
}

void MethodMetrics::Ended(const absl::Status& status, double seconds) const {
  handled[static_cast<int>(status.code())]->Increment();
  handling_seconds->Observe(seconds);
  if (!status.ok()) refused->Count(status);
}

RpcMetrics::RpcMetrics(prometheus::Registry& registry)
    : started_(Counters(registry, "grpc_server_started_total",
                        "Total number of RPCs started on the server.")),
      handled_(Counters(registry, "grpc_server_handled_total",
                        "Total number of RPCs completed on the server, by code.")),
      messages_received_(Counters(registry, "grpc_server_msg_received_total",
                                  "Total number of messages received on the server.")),
      messages_sent_(Counters(registry, "grpc_server_msg_sent_total",
                              "Total number of messages sent by the server.")),
      handling_seconds_(BuildHistogram()
                            .Name("grpc_server_handling_seconds")
                            .Help("Seconds from the start of an RPC to its status.")
                            .Register(registry)),
      refused_(Counters(registry, "phimap_refused_total",
                        "RPCs that ended with RESOURCE_EXHAUSTED or UNAVAILABLE, or because the "
                        "store cannot be written, by the reason in the error.")) {}

MethodMetrics RpcMetrics::AddMethod(absl::string_view service, absl::string_view method,
                                    absl::string_view type) {
  const prometheus::Labels labels = {{"grpc_type", std::string(type)},
                                     {"grpc_service", std::string(service)},
                                     {"grpc_method", std::string(method)}};
  const auto refusals =
      refusals_.try_emplace(std::string(service), refused_, std::string(service)).first;
  MethodMetrics metrics{.full_name = absl::StrCat(service, "/", method),
                        .started = &started_.Add(labels),
                        .handled = {},
                        .messages_received = &messages_received_.Add(labels),
                        .messages_sent = &messages_sent_.Add(labels),
                        .handling_seconds = &handling_seconds_.Add(labels, LatencyBuckets()),
                        .refused = &refusals->second};
  for (int i = 0; i < kStatusCodes; ++i) {
    prometheus::Labels with_code = labels;
    with_code["grpc_code"] = std::string(kCodeLabels[i]);
    metrics.handled[i] = &handled_.Add(with_code);
  }
  return metrics;
}

namespace {

std::array<prometheus::Counter*, kDrops> DropCounters(prometheus::Registry& registry) {
  auto& family = prometheus::BuildCounter()
                     .Name("phimap_transform_dropped_total")
                     .Help(
                         "Accepted requests that were not computed completely, because their "
                         "deadline passed or their client cancelled them.")
                     .Register(registry);
  return {&family.Add({{"reason", "deadline"}}), &family.Add({{"reason", "cancelled"}})};
}

}  // namespace

TransformMetrics::TransformMetrics(prometheus::Registry& registry)
    : rows(OneCounter(registry, "phimap_transform_rows_total", "Rows mapped.")),
      batch_rows(OneHistogram(registry, "phimap_transform_batch_rows", "Rows per batch.",
                              {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384, 65536})),
      batch_requests(OneHistogram(registry, "phimap_transform_batch_requests",
                                  "Requests per batch.", {1, 2, 4, 8, 16, 32, 64})),
      parse_seconds(OneHistogram(registry, "phimap_transform_parse_seconds",
                                 "Seconds from reading a request to queueing it: checks, and "
                                 "loading its version if necessary.",
                                 LatencyBuckets())),
      queue_seconds(OneHistogram(registry, "phimap_transform_queue_seconds",
                                 "Seconds that a request waited for a worker.", LatencyBuckets())),
      compute_seconds(
          OneHistogram(registry, "phimap_transform_compute_seconds",
                       "Seconds that the batch of a request was computed. Each request counts the "
                       "whole time of its batch, so the sum exceeds the computing time.",
                       LatencyBuckets())),
      answer_seconds(OneHistogram(registry, "phimap_transform_answer_seconds",
                                  "Seconds from just before a request's features are computed "
                                  "until they are sent or dropped.",
                                  LatencyBuckets())),
      memory_bytes(OneGauge(
          registry, "phimap_request_memory_bytes",
          "Memory of requests and answers in bytes, from before they arrive until they are sent.")),
      inline_requests(OneCounter(registry, "phimap_transform_inline_total",
                                 "Requests that were computed on their event loop, without a "
                                 "thread of the compute pool.")),
      pool_busy_seconds(
          OneCounter(registry, "phimap_compute_pool_busy_seconds_total",
                     "Seconds that threads of the compute pool were busy; its rate divided by "
                     "phimap_compute_threads is the busy share of the pool.")),
      dropped(DropCounters(registry)) {}

void TransformMetrics::BatchComputed(int64_t requests, int64_t rows) const {
  batch_requests->Observe(static_cast<double>(requests));
  batch_rows->Observe(static_cast<double>(rows));
}

void TransformMetrics::RequestComputed(int64_t request_rows, double batch_seconds) const {
  rows->Increment(static_cast<double>(request_rows));
  compute_seconds->Observe(batch_seconds);
}

ConnectionMetrics::ConnectionMetrics(prometheus::Registry& registry)
    : ConnectionMetrics(
          registry,
          prometheus::BuildCounter()
              .Name("phimap_reload_failures_total")
              .Help(
                  "Changed files of TLS, tokens or settings that could not be used; what was read "
                  "before stays in force.")
              .Register(registry),
          prometheus::BuildCounter()
              .Name("phimap_connections_ended_total")
              .Help("Connections to the API that were ended because of a fault of the client.")
              .Register(registry),
          prometheus::BuildCounter()
              .Name("phimap_http_refused_total")
              .Help("Requests to the API that were not gRPC, by the HTTP status of the answer.")
              .Register(registry)) {}

ConnectionMetrics::ConnectionMetrics(prometheus::Registry& registry,
                                     prometheus::Family<prometheus::Counter>& reload_failures,
                                     prometheus::Family<prometheus::Counter>& ended,
                                     prometheus::Family<prometheus::Counter>& http_refused)
    : accepted(OneCounter(registry, "phimap_connections_accepted_total",
                          "Connections to the API that were accepted.")),
      refused(OneCounter(
          registry, "phimap_connections_refused_total",
          "Connections to the API that were closed at once because too many were open.")),
      refused_by_address(OneCounter(
          registry, "phimap_connections_refused_by_address_total",
          "Connections to the API that were closed at once because their address had too many.")),
      ended_for_resets(&ended.Add({{"reason", "resets"}})),
      ended_for_control_frames(&ended.Add({{"reason", "control_frames"}})),
      ended_for_headers(&ended.Add({{"reason", "headers"}})),
      ended_for_protocol(&ended.Add({{"reason", "protocol"}})),
      ended_for_other_protocol(&ended.Add({{"reason", "not_http2"}})),
      ended_for_tls_records(&ended.Add({{"reason", "tls_records"}})),
      ended_for_refused_calls(&ended.Add({{"reason", "refused_calls"}})),
      ended_for_no_call(&ended.Add({{"reason", "no_call"}})),
      ended_for_proxy_header(&ended.Add({{"reason", "proxy_header"}})),
      ended_for_certificate(&ended.Add({{"reason", "certificate"}})),
      http_405(&http_refused.Add({{"status", "405"}})),
      http_415(&http_refused.Add({{"status", "415"}})),
      open(OneGauge(registry, "phimap_connections_open", "Open connections to the API.")),
      certificate_not_after(OneGauge(registry, "phimap_tls_certificate_not_after_seconds",
                                     "Time at which the server's TLS certificate expires, in "
                                     "seconds since 1970; +Inf without TLS.")),
      tls_reload_failures(&reload_failures.Add({{"file", "tls"}})),
      token_reload_failures(&reload_failures.Add({{"file", "tokens"}})),
      config_reload_failures(&reload_failures.Add({{"file", "config"}})),
      handshakes_failed_(&prometheus::BuildCounter()
                              .Name("phimap_handshakes_failed_total")
                              .Help("Handshakes of TLS that failed.")
                              .Register(registry)) {
  certificate_not_after->Set(std::numeric_limits<double>::infinity());
  for (const char* kind :
       {"not_tls", "no_certificate", "certificate", "no_http2", "other", "queue_full"}) {
    handshakes_failed_->Add({{"reason", kind}});  // so that each is shown from the start, as 0
  }
}

void ConnectionMetrics::HandshakeFailed(absl::string_view kind) const {
  handshakes_failed_->Add({{"reason", std::string(kind)}}).Increment();
}

TraceMetrics::TraceMetrics(prometheus::Registry& registry)
    : TraceMetrics(registry,
                   prometheus::BuildCounter()
                       .Name("phimap_trace_spans_dropped_total")
                       .Help("Spans of traces that were not sent to the collector, by reason.")
                       .Register(registry)) {}

TraceMetrics::TraceMetrics(prometheus::Registry& registry,
                           prometheus::Family<prometheus::Counter>& dropped)
    : sent(OneCounter(registry, "phimap_trace_spans_sent_total",
                      "Spans of traces that the collector took.")),
      dropped_queue_full(&dropped.Add({{"reason", "queue_full"}})),
      dropped_undelivered(&dropped.Add({{"reason", "undelivered"}})),
      dropped_rejected(&dropped.Add({{"reason", "rejected"}})),
      dropped_no_memory(&dropped.Add({{"reason", "no_memory"}})),
      failures(OneCounter(registry, "phimap_trace_request_failures_total",
                          "Requests to the collector of traces that failed.")) {}

namespace {

// Labels of the states, in the order of BuildState.
constexpr const char* kStateLabels[kBuildStates] = {
    "receiving", "queued", "computing", "publishing", "done", "failed", "cancelled"};
// Labels of the phases, in the order in which a build goes through them.
constexpr absl::string_view kPhaseLabels[kBuildPhases] = {
    "receive", "queue", "sample",      "choose", "kernel", "gram",
    "factor",  "draw",  "certificate", "encode", "publish"};

std::array<prometheus::Gauge*, kBuildStates> StateGauges(prometheus::Registry& registry) {
  auto& family = prometheus::BuildGauge()
                     .Name("phimap_builds")
                     .Help("Builds known to the server, by state.")
                     .Register(registry);
  std::array<prometheus::Gauge*, kBuildStates> gauges{};
  for (int i = 0; i < kBuildStates; ++i) gauges[i] = &family.Add({{"state", kStateLabels[i]}});
  return gauges;
}

std::array<prometheus::Counter*, kStatusCodes> EndCounters(
    prometheus::Family<prometheus::Counter>& family) {
  std::array<prometheus::Counter*, kStatusCodes> counters{};
  for (int i = 0; i < kStatusCodes; ++i) {
    counters[i] = &family.Add({{"code", std::string(CodeLabel(static_cast<absl::StatusCode>(i)))}});
  }
  return counters;
}

std::array<prometheus::Histogram*, kBuildPhases> PhaseHistograms(prometheus::Registry& registry) {
  auto& family = prometheus::BuildHistogram()
                     .Name("phimap_build_phase_seconds")
                     .Help("Duration of completed phases of builds, in seconds.")
                     .Register(registry);
  std::array<prometheus::Histogram*, kBuildPhases> histograms{};
  for (int i = 0; i < kBuildPhases; ++i) {
    histograms[i] = &family.Add({{"phase", std::string(kPhaseLabels[i])}}, LongLatencyBuckets());
  }
  return histograms;
}

}  // namespace

BuildMetrics::BuildMetrics(prometheus::Registry& registry)
    : BuildMetrics(registry, prometheus::BuildCounter()
                                 .Name("phimap_builds_ended_total")
                                 .Help("Builds that ended, by their code.")
                                 .Register(registry)) {}

BuildMetrics::BuildMetrics(prometheus::Registry& registry,
                           prometheus::Family<prometheus::Counter>& ended)
    : in_state(StateGauges(registry)),
      rows(OneCounter(registry, "phimap_build_rows_total", "Rows taken into builds.")),
      seconds(OneHistogram(registry, "phimap_build_seconds",
                           "Seconds from the start of computing to the stored version.",
                           LongLatencyBuckets())),
      memory_bytes(OneGauge(registry, "phimap_build_memory_bytes",
                            "Memory reserved for unfinished builds.")),
      ended_(EndCounters(ended)),
      ended_at_share_(
          &ended.Add({{"code", std::string(CodeLabel(absl::StatusCode::kResourceExhausted))},
                      {"reason", reason::kStoreShareReached}})),
      phase_seconds_(PhaseHistograms(registry)) {}

prometheus::Counter& BuildMetrics::Ended(const absl::Status& end) const {
  const bool at_share =
      !end.ok() && DetailOf(end).value_or(ErrorDetail()).reason == reason::kStoreShareReached;
  return at_share ? *ended_at_share_ : *ended_[static_cast<int>(end.code())];
}

prometheus::Histogram* BuildMetrics::PhaseSeconds(absl::string_view phase) const {
  for (int i = 0; i < kBuildPhases; ++i) {
    if (kPhaseLabels[i] == phase) return phase_seconds_[i];
  }
  return nullptr;
}

void BuildMetrics::PhaseEnded(absl::string_view phase, double phase_seconds) const {
  if (prometheus::Histogram* const histogram = PhaseSeconds(phase)) {
    histogram->Observe(phase_seconds);
  }
}

namespace {

// Status codes that a fault of the store may have (see IsStoreFault).
constexpr absl::StatusCode kFaultCodes[] = {
    absl::StatusCode::kUnknown,     absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kInternal,    absl::StatusCode::kFailedPrecondition,
    absl::StatusCode::kUnavailable, absl::StatusCode::kDataLoss};
// Reasons of errors that have such a code, but are not faults.
constexpr absl::string_view kAnswers[] = {
    reason::kAliasLimitReached,     reason::kMappingInUse,    reason::kVersionInUse,
    reason::kVersionRollbackTarget, reason::kMappingNotEmpty, reason::kStoreShareReached};

std::array<prometheus::Histogram*, kStoreOperations> CallHistograms(
    prometheus::Registry& registry) {
  auto& family = prometheus::BuildHistogram()
                     .Name("phimap_store_call_seconds")
                     .Help("Duration of a call to the store in seconds.")
                     .Register(registry);
  std::array<prometheus::Histogram*, kStoreOperations> histograms{};
  for (int i = 0; i < kStoreOperations; ++i) {
    histograms[i] = &family.Add({{"operation", kStoreOperationLabels[i]}}, LongLatencyBuckets());
  }
  return histograms;
}

std::array<prometheus::Counter*, kStatusCodes> FaultCounters(prometheus::Registry& registry) {
  auto& family =
      prometheus::BuildCounter()
          .Name("phimap_store_faults_total")
          .Help("Calls to the store that failed because of its disk, its files or a bug, by code.")
          .Register(registry);
  std::array<prometheus::Counter*, kStatusCodes> counters{};
  for (const absl::StatusCode code : kFaultCodes) {
    counters[static_cast<int>(code)] = &family.Add({{"code", std::string(CodeLabel(code))}});
  }
  return counters;
}

}  // namespace

bool IsStoreFault(const absl::Status& status) {
  if (std::find(std::begin(kFaultCodes), std::end(kFaultCodes), status.code()) ==
      std::end(kFaultCodes)) {
    return false;
  }
  const std::string reason = DetailOf(status).value_or(ErrorDetail()).reason;
  return std::find(std::begin(kAnswers), std::end(kAnswers), reason) == std::end(kAnswers);
}

StoreMetrics::StoreMetrics(prometheus::Registry& registry)
    : call_seconds(CallHistograms(registry)),
      faults(FaultCounters(registry)),
      waiting(OneGauge(registry, "phimap_store_calls_waiting",
                       "Calls waiting for a thread of the store.")) {}

void StoreMetrics::Called(StoreOperation operation, const absl::Status& status,
                          double seconds) const {
  call_seconds[static_cast<int>(operation)]->Observe(seconds);
  if (IsStoreFault(status)) faults[static_cast<int>(status.code())]->Increment();
}

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

namespace {

// All calls return series of one family, because they register it under the same name.
prometheus::Gauge* AliasVersions(prometheus::Registry& registry, const char* state) {
  return &prometheus::BuildGauge()
              .Name("phimap_alias_versions")
              .Help("Versions that aliases point to, by state: warm, loading, failed.")
              .Register(registry)
              .Add({{"state", state}});
}

}  // namespace

RegistryMetrics::RegistryMetrics(prometheus::Registry& registry)
    : live_versions(OneGauge(registry, "phimap_live_versions",
                             "Versions that are loaded and ready to serve.")),
      live_bytes(OneGauge(registry, "phimap_live_version_bytes", "Memory of loaded versions.")),
      loads(OneCounter(registry, "phimap_version_loads_total", "Versions loaded from the store.")),
      load_errors(OneCounter(registry, "phimap_version_load_errors_total",
                             "Existing versions that could not be loaded.")),
      load_seconds(OneHistogram(registry, "phimap_version_load_seconds",
                                "Time to load a version in seconds: read, check, decode, pack.",
                                LongLatencyBuckets())),
      loads_waiting(
          OneGauge(registry, "phimap_version_loads_waiting", "Versions waiting to be loaded.")),
      evictions(OneCounter(registry, "phimap_version_evictions_total",
                           "Loaded versions that were unloaded to free memory.")),
      alias_versions_warm(AliasVersions(registry, "warm")),
      alias_versions_loading(AliasVersions(registry, "loading")),
      alias_versions_failed(AliasVersions(registry, "failed")),
      catalog_errors(OneCounter(registry, "phimap_catalog_errors_total",
                                "Failed requests to the database for other servers' changes.")),
      versions(std::make_unique<VersionSeries>(registry)) {}

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
      kernels_(*registry_),
      callers_(*registry_),
      traces_(*registry_) {
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

void Metrics::WatchDisk(const std::string& whose, const std::string& folder) {
  sources_->Add(std::make_shared<DiskMetrics>(whose, folder));
}

void Metrics::WatchGauge(std::string name, std::string help, std::function<double()> read) {
  sources_->Add(std::make_shared<ReadMetric>(std::move(name), std::move(help),
                                             prometheus::MetricType::Gauge, std::move(read)));
}

void Metrics::WatchCounter(std::string name, std::string help, std::function<double()> read) {
  sources_->Add(std::make_shared<ReadMetric>(std::move(name), std::move(help),
                                             prometheus::MetricType::Counter, std::move(read)));
}

void Metrics::WatchLabeledGauge(std::string name, std::string help, std::string label,
                                std::function<std::optional<Labeled>()> read) {
  sources_->Add(std::make_shared<LabeledMetric>(std::move(name), std::move(help), std::move(label),
                                                std::move(read)));
}

void Metrics::WatchLog(const Logger& logger) {
  sources_->Add(std::make_shared<LogMetrics>(logger));
}

}  // namespace phimap
