// Answers calls of Triton's extensions that this server does not support.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_ABSENT_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_ABSENT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/inference_service.pb.h"
#include "server/observe/log.h"

namespace phimap {

// Returns UNIMPLEMENTED (reason METHOD_NOT_OFFERED) with the cause and the remedy. `method` is one
// of RepositoryModelLoad, RepositoryModelUnload, SystemSharedMemoryRegister and
// CudaSharedMemoryRegister. (The Status calls of shared memory return no region, and the Unregister
// calls return OK, because clients make these calls to clean up before they begin.)
absl::Status AbsentCall(absl::string_view method);

// Returns settings that say that nothing is traced. INVALID_ARGUMENT (PARAMETER_NOT_SUPPORTED,
// field "settings") if the request sets something. Pure.
absl::StatusOr<inference::TraceSettingResponse> TraceSettingOf(
    const inference::TraceSettingRequest& request);

// Returns the log's settings. INVALID_ARGUMENT (PARAMETER_NOT_SUPPORTED, field "settings") if the
// request sets something. Pure.
absl::StatusOr<inference::LogSettingsResponse> LogSettingsOf(
    const inference::LogSettingsRequest& request, LogLevel level);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_ABSENT_H_
