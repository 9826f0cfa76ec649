// The API over HTTP, and the Open Inference Protocol: a door to the same calls as gRPC's. A door
// translates bytes and nothing else: roles, limits, the budget of memory, names, errors and bits
// are those of the calls.
//
// A request is a call of one of rules.json's methods, or of inference_format.h's. Its head is
// admitted by the dispatcher before its body is read. The body counts as the call's one message,
// under all its limits, or is cut into the messages of its stream, and is parsed where a protobuf
// message would be parsed (RequestParser); the answer is written in the request's format
// (HttpFormat), on another thread if it is large.
//
// Browsers are hostile ground: a page of a stranger may send requests to an address that only its
// reader's machine can reach. So a request must name a host that is known (HostNames), must not say
// that it comes from another site unless that is listed (origins), and its body must be announced
// as a type that no form sends.
//
// At "/" the door serves a page for people (PageFiles), which calls this API.
#ifndef PHIMAP_SERVER_HTTP_HTTP_DOOR_H_
#define PHIMAP_SERVER_HTTP_HTTP_DOOR_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/host_names.h"
#include "server/http/http_status.h"
#include "server/http/page_files.h"
#include "server/observe/request_id.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

class HttpDoor final : public StreamAcceptor {
 public:
  // `dispatcher` must outlive the door. `origins`: those of other sites, such as
  // "https://app.example.com", whose pages may call and read the answers.
  HttpDoor(Dispatcher& dispatcher, HostNames names, const std::vector<std::string>& origins)
      : dispatcher_(dispatcher),
        names_(std::move(names)),
        origins_(origins.begin(), origins.end()) {}

  // INVALID_ARGUMENT (ADDRESS_INVALID), which names `flag`, unless `origin` is one as browsers send
  // it: a scheme and a host, in lower case, with a port if it is not the scheme's own.
  static absl::Status CheckOrigin(absl::string_view flag, absl::string_view origin);

  // Tells readers of the page where the API is by gRPC. Call before requests come.
  void SetGrpcAddress(absl::string_view address) { page_.SetGrpcAddress(address); }

  void OnRequest(Stream& stream, const RequestHead& head, bool ended) override;

 private:
  // Logs a request that is refused before the dispatcher sees it, or after the dispatcher admitted
  // it and before its call begins.
  void LogRefusal(const Stream& stream, const absl::Status& status, const HttpError& error,
                  const RequestId& request_id) const;

  Dispatcher& dispatcher_;
  const HostNames names_;
  const absl::flat_hash_set<std::string> origins_;
  PageFiles page_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_HTTP_DOOR_H_
