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
    "there is no shared memory between client and server: rows travel in raw_input_contents, "
    "features in raw_output_contents. On one machine a Unix socket is the shortest way";

constexpr Entry kEntries[] = {
    {"RepositoryModelLoad",
     "versions are loaded when they are asked for: ModelReady loads one. New ones come by Build "
     "and "
     "Import of phimap.v1.MappingService"},
    {"RepositoryModelUnload",
     "the versions longest unused make room by themselves. A version that nobody is to use any "
     "more "
     "is deleted by DeleteVersion of phimap.v1.MappingService"},
    {"SystemSharedMemoryRegister", kNoSharedMemory},
    {"CudaSharedMemoryRegister", kNoSharedMemory},
};

absl::Status CannotBeSet(absl::string_view instead) {
  return MakeError(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_PARAMETER", "settings",
                   absl::StrCat("nothing can be set by this call: ", instead));
}

}  // namespace

absl::Status AbsentCall(absl::string_view method) {
  for (const Entry& entry : kEntries) {
    if (entry.method != method) continue;
    return MakeError(absl::StatusCode::kUnimplemented, "RPC_NOT_OFFERED", "", entry.why);
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
    return CannotBeSet("what goes to the log is said by --log_level when the server starts");
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
