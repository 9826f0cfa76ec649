#include "server/observe/metrics.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace phimap {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

constexpr absl::string_view kCodeLabels[kStatusCodes] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};
constexpr const char* kRefusalLabels[kRefusals] = {"queue_full", "deadline", "cancelled",
                                                   "shutdown"};
// In the order of BuildState.
constexpr const char* kBuildStateLabels[kBuildStates] = {
    "receiving", "queued", "computing", "publishing", "done", "failed", "cancelled"};

// From 25 µs, half of what an empty call takes, to 10 s.
const std::vector<double>& CallBuckets() {
  static const std::vector<double>* const buckets = new std::vector<double>{
      25e-6, 50e-6, 75e-6, 100e-6, 150e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3,
      10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1,      2.5,  5,      10};
  return *buckets;
}

// From 1 µs: queues are empty most of the time.
const std::vector<double>& StepBuckets() {
  static const std::vector<double>* const buckets = new std::vector<double>{
      1e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 5e-3, 25e-3, 100e-3, 1, 10};
  return *buckets;
}

prometheus::Counter* OneCounter(prometheus::Registry& registry, const char* name,
                                const char* help) {
  return &BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Gauge* OneGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return &BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Histogram* OneHistogram(prometheus::Registry& registry, const char* name,
                                    const char* help, const std::vector<double>& buckets) {
  return &BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

}  // namespace

absl::string_view CodeLabel(absl::StatusCode code) {
  const int index = static_cast<int>(code);
  return index >= 0 && index < kStatusCodes ? kCodeLabels[index] : kCodeLabels[2];
}

Metrics::Metrics() : registry_(std::make_shared<prometheus::Registry>()) {
  InitRpc();
  InitTransform();
  InitRegistry();
  InitBuild();
}

void Metrics::InitRpc() {
  prometheus::Registry& r = *registry_;
  started_ = &BuildCounter()
                  .Name("grpc_server_started_total")
                  .Help("Total number of RPCs started on the server.")
                  .Register(r);
  handled_ = &BuildCounter()
                  .Name("grpc_server_handled_total")
                  .Help("Total number of RPCs completed on the server, by code.")
                  .Register(r);
  messages_received_ = &BuildCounter()
                            .Name("grpc_server_msg_received_total")
                            .Help("Total number of messages received on the server.")
                            .Register(r);
  messages_sent_ = &BuildCounter()
                        .Name("grpc_server_msg_sent_total")
                        .Help("Total number of messages sent by the server.")
                        .Register(r);
  handling_seconds_ = &BuildHistogram()
                           .Name("grpc_server_handling_seconds")
                           .Help("Seconds from the start of an RPC to its status.")
                           .Register(r);
}

void Metrics::InitTransform() {
  prometheus::Registry& r = *registry_;
  transform_.rows = OneCounter(r, "phimap_transform_rows_total", "Rows mapped.");
  transform_.batch_rows =
      OneHistogram(r, "phimap_transform_batch_rows", "Rows that one worker took at once.",
                   {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384, 65536});
  transform_.queue_seconds = OneHistogram(r, "phimap_transform_queue_seconds",
                                          "Seconds a request waited for a worker.", StepBuckets());
  transform_.compute_seconds = OneHistogram(r, "phimap_transform_compute_seconds",
                                            "Seconds a worker took for a request.", StepBuckets());
  transform_.queue_bytes =
      OneGauge(r, "phimap_transform_queue_bytes",
               "Bytes of requests and answers that are queued or being computed.");
  auto& refused = BuildCounter()
                      .Name("phimap_transform_refused_total")
                      .Help("Requests that were not computed, by reason.")
                      .Register(r);
  for (int i = 0; i < kRefusals; ++i) {
    transform_.refused[i] = &refused.Add({{"reason", kRefusalLabels[i]}});
  }
}

void Metrics::InitRegistry() {
  prometheus::Registry& r = *registry_;
  registry_metrics_.live_versions =
      OneGauge(r, "phimap_live_versions", "Versions that are loaded and ready to serve.");
  registry_metrics_.live_bytes =
      OneGauge(r, "phimap_live_version_bytes", "Memory that loaded versions take.");
  registry_metrics_.loads =
      OneCounter(r, "phimap_version_loads_total", "Versions loaded from the store.");
  registry_metrics_.load_errors = OneCounter(r, "phimap_version_load_errors_total",
                                             "Versions that exist and could not be loaded.");
  registry_metrics_.evictions =
      OneCounter(r, "phimap_version_evictions_total", "Loaded versions dropped to make room.");
}

void Metrics::InitBuild() {
  prometheus::Registry& r = *registry_;
  auto& in_state =
      BuildGauge().Name("phimap_builds").Help("Builds known to the server, by state.").Register(r);
  for (int i = 0; i < kBuildStates; ++i) {
    build_.in_state[i] = &in_state.Add({{"state", kBuildStateLabels[i]}});
  }
  auto& ended = BuildCounter()
                    .Name("phimap_builds_ended_total")
                    .Help("Builds that ended, by the code they ended with.")
                    .Register(r);
  for (int i = 0; i < kStatusCodes; ++i) {
    build_.ended[i] = &ended.Add({{"code", std::string(kCodeLabels[i])}});
  }
  build_.rows = OneCounter(r, "phimap_build_rows_total", "Rows taken into builds.");
  build_.seconds =
      OneHistogram(r, "phimap_build_seconds", "Seconds from the last row to the stored version.",
                   {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800});
  build_.memory_bytes =
      OneGauge(r, "phimap_build_memory_bytes", "Memory reserved for builds that are not finished.");
}

MethodMetrics Metrics::AddMethod(absl::string_view service, absl::string_view method,
                                 absl::string_view type) {
  const prometheus::Labels labels = {{"grpc_type", std::string(type)},
                                     {"grpc_service", std::string(service)},
                                     {"grpc_method", std::string(method)}};
  MethodMetrics metrics{.full_name = absl::StrCat(service, "/", method),
                        .started = &started_->Add(labels),
                        .handled = {},
                        .messages_received = &messages_received_->Add(labels),
                        .messages_sent = &messages_sent_->Add(labels),
                        .handling_seconds = &handling_seconds_->Add(labels, CallBuckets())};
  for (int i = 0; i < kStatusCodes; ++i) {
    prometheus::Labels with_code = labels;
    with_code["grpc_code"] = std::string(kCodeLabels[i]);
    metrics.handled[i] = &handled_->Add(with_code);
  }
  return metrics;
}

void Metrics::SetBuildInfo(absl::string_view version, absl::string_view blas_core,
                           absl::string_view engine_target, int compute_threads) {
  BuildGauge()
      .Name("phimap_info")
      .Help("Version of the server and what it computes with.")
      .Register(*registry_)
      .Add({{"version", std::string(version)},
            {"blas_core", std::string(blas_core)},
            {"engine_target", std::string(engine_target)}})
      .Set(1);
  OneGauge(*registry_, "phimap_compute_threads", "Threads of the compute pool.")
      ->Set(compute_threads);
}

}  // namespace phimap
