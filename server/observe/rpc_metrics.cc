#include "server/observe/rpc_metrics.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/observe/latency_buckets.h"

namespace phimap {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;

constexpr absl::string_view kCodeLabels[kStatusCodes] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

constexpr absl::string_view kRefusalReasons[] = {"alias_limit_reached",
                                                 "artifact_removed",
                                                 "artifact_too_large",
                                                 "build_limit_reached",
                                                 "build_memory_full",
                                                 "call_limit_reached",
                                                 "commit_in_doubt",
                                                 "commit_local_only",
                                                 "database_busy",
                                                 "database_exhausted",
                                                 "database_read_only",
                                                 "database_unavailable",
                                                 "disk_full",
                                                 "evaluation_limit_reached",
                                                 "export_limit_reached",
                                                 "file_io_failed",
                                                 "headers_too_large",
                                                 "import_limit_reached",
                                                 "kernel_queue_full",
                                                 "kernel_service_timed_out",
                                                 "kernel_service_unavailable",
                                                 "live_versions_full",
                                                 "machine_memory_full",
                                                 "message_too_large",
                                                 "open_file_limit_reached",
                                                 "projection_too_large",
                                                 "queue_full",
                                                 "request_memory_full",
                                                 "revision_not_reached",
                                                 "sample_too_large",
                                                 "server_shutting_down"};

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
    by_reason_[reason] = &family.Add({{"grpc_service", service}, {"reason", std::string(reason)}});
  }
}

void RefusalCounters::Count(const absl::Status& status) const {
  if (status.code() != absl::StatusCode::kResourceExhausted &&
      status.code() != absl::StatusCode::kUnavailable) {
    return;
  }
  const ErrorDetail detail = DetailOf(status).value_or(ErrorDetail());
  const auto found = by_reason_.find(absl::AsciiStrToLower(detail.reason));
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
                        "RPCs that ended with RESOURCE_EXHAUSTED or UNAVAILABLE, by the reason "
                        "in the error.")) {}

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

}  // namespace phimap
