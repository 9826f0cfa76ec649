#include "server/inference/inference_absent.h"

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {
namespace {

struct Entry {
  absl::string_view method;
  absl::string_view why;
};

constexpr absl::string_view kNoSharedMemory =
    "shared memory between client and server is not supported: rows travel in raw_input_contents, "
    "features in raw_output_contents. On one machine, a Unix socket is fastest";

constexpr Entry kEntries[] = {
    {"RepositoryModelLoad",
     "versions are loaded on demand: ModelReady loads one. Build and Import of "
     "phimap.v1.MappingService create new ones"},
    {"RepositoryModelUnload",
     "the least recently used versions are unloaded automatically. DeleteVersion of "
     "phimap.v1.MappingService deletes a version"},
    {"SystemSharedMemoryRegister", kNoSharedMemory},
    {"CudaSharedMemoryRegister", kNoSharedMemory},
};

absl::Status CannotBeSet(absl::string_view instead) {
  return MakeError(absl::StatusCode::kInvalidArgument, "PARAMETER_NOT_SUPPORTED", "settings",
                   absl::StrCat("this call cannot change settings: ", instead));
}

}  // namespace

absl::Status AbsentCall(absl::string_view method) {
  for (const Entry& entry : kEntries) {
    if (entry.method != method) continue;
    return MakeError(absl::StatusCode::kUnimplemented, "METHOD_NOT_OFFERED", "", entry.why);
  }
  PHIMAP_CHECK(false);
  return absl::InternalError("");
}

absl::StatusOr<inference::TraceSettingResponse> TraceSettingOf(
    const inference::TraceSettingRequest& request) {
  if (!request.settings().empty()) {
    return CannotBeSet("requests are not traced; /metrics has the times of their phases");
  }
  inference::TraceSettingResponse response;
  (*response.mutable_settings())["trace_level"].add_value("OFF");
  return response;
}

absl::StatusOr<inference::LogSettingsResponse> LogSettingsOf(
    const inference::LogSettingsRequest& request, LogLevel level) {
  if (!request.settings().empty()) {
    return CannotBeSet("the log is configured by --log_level when the server starts");
  }
  inference::LogSettingsResponse response;
  auto& settings = *response.mutable_settings();
  settings["log_error"].set_bool_param(level <= LogLevel::kError);
  settings["log_warning"].set_bool_param(level <= LogLevel::kWarning);
  settings["log_info"].set_bool_param(level <= LogLevel::kInfo);
  settings["log_verbose_level"].set_uint32_param(level <= LogLevel::kDebug ? 1 : 0);
  return response;
}

}  // namespace phimap
