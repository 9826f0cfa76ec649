// The calls of Triton's extensions that ask for what is not here, and what they are told.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_ABSENT_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_ABSENT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/inference_service.pb.h"
#include "server/observe/log.h"

namespace phimap {

// UNIMPLEMENTED (reason RPC_NOT_OFFERED) with why, and what to do instead. `method` is one of
// RepositoryModelLoad, RepositoryModelUnload, SystemSharedMemoryRegister and
// CudaSharedMemoryRegister. (The Status calls of shared memory are answered with no region, and the
// Unregister calls with OK: clients make them to be sure before they begin.)
absl::Status AbsentCall(absl::string_view method);

// That nothing is traced. INVALID_ARGUMENT (UNSUPPORTED_PARAMETER, field settings) for a request
// that sets something. Pure.
absl::StatusOr<inference::TraceSettingResponse> TraceSettingOf(
    const inference::TraceSettingRequest& request);

// What goes to the log. INVALID_ARGUMENT (UNSUPPORTED_PARAMETER, field settings) for a request that
// sets something. Pure.
absl::StatusOr<inference::LogSettingsResponse> LogSettingsOf(
    const inference::LogSettingsRequest& request, LogLevel level);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_ABSENT_H_
