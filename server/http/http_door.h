// The API over HTTP, with JSON: a door to the same calls as gRPC's. A door translates bytes and
// nothing else: roles, limits, the budget of memory, names, errors and bits are those of the calls.
//
// A request is a call of one of rules.json's methods. Its head is admitted by the dispatcher before
// its body is read. The body counts as the call's one message, under all its limits, and is parsed
// as JSON where a protobuf message would be parsed (RequestParser); the answer is printed as JSON,
// on another thread if it is large.
//
// Browsers are hostile ground: a page of a stranger may send requests to an address that only its
// reader's machine can reach. So a request must name a host that is known (HostNames), must not say
// that it comes from another site, and its body must be announced as application/json, which no
// form sends.
#ifndef PHIMAP_SERVER_HTTP_HTTP_DOOR_H_
#define PHIMAP_SERVER_HTTP_HTTP_DOOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/host_names.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

class HttpDoor final : public StreamAcceptor {
 public:
  // `dispatcher` must outlive the door.
  HttpDoor(Dispatcher& dispatcher, HostNames names)
      : dispatcher_(dispatcher), names_(std::move(names)) {}

  void OnRequest(Stream& stream, const RequestHead& head, bool ended) override;

 private:
  Dispatcher& dispatcher_;
  const HostNames names_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_HTTP_DOOR_H_
