// The Open Inference Protocol over HTTP: its paths, which begin with /v2, as calls of
// GRPCInferenceService.
//
//   GET  /v2                            ServerMetadata    GET  /v2/models/NAME ModelMetadata GET
//   /v2/health/live                ServerLive        GET  /v2/models/NAME/ready    ModelReady GET
//   /v2/health/ready               ServerReady       POST /v2/models/NAME/infer    ModelInfer POST
//   /v2/repository/index           RepositoryIndex   GET  /v2/models/NAME/config   ModelConfig GET
//   /v2/models/stats               ModelStatistics   GET  /v2/models/NAME/stats    ModelStatistics
//
// /versions/VERSION may follow NAME. Where the protocol says no by a status, as for a server that
// is not ready, that is 400.
#ifndef PHIMAP_SERVER_HTTP_INFERENCE_FORMAT_H_
#define PHIMAP_SERVER_HTTP_INFERENCE_FORMAT_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "server/http/http_format.h"
#include "server/http/http_status.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

// Whether a request is one of this protocol, so that its errors have the protocol's form.
bool IsInferencePath(absl::string_view path);

// The error in the protocol's form: the same JSON with the message in "error".
HttpError InferenceError(HttpError error);

// Finds what a request calls, or why it calls nothing. REQUIRES: IsInferencePath.
std::optional<HttpRefusal> FindInferenceTarget(const RequestHead& head, HttpTarget& target);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_INFERENCE_FORMAT_H_
