// The HTTP endpoint that a Prometheus server scrapes (GET /metrics), with health checks (GET /livez
// and /readyz).
//
// Phimap has its own small listener, because prometheus::Exposer is not safe here. The worker
// threads of Exposer have stacks of 100 KiB. Of these, glibc takes 60 KiB for the static
// thread-local storage of OpenBLAS. The rest is too small for the error answers of Exposer's web
// server, so any such answer overflows the stack.
//
// Guarantees: one thread and bounded memory (32 connections, 8 KiB of request each). No client can
// block the endpoint. A connection that is not finished within 10 seconds is closed. If all 32
// connections are in use, the oldest one whose request is incomplete is closed to make room for the
// next. At most 8 connections wait for their client to read the answer, which only the long answer
// of /metrics makes them do; the oldest is closed for the next. So health checks always find room.
// A request for anything else, or a malformed or too long request, gets 404, 405, 400 or 431. Each
// connection is closed after one answer.
#ifndef PHIMAP_SERVER_OBSERVE_HTTP_ENDPOINT_H_
#define PHIMAP_SERVER_OBSERVE_HTTP_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace phimap {

// The kind of answer to a request, judged by its head (up to the empty line).
enum class HttpVerdict { kMetrics, kLive, kReady, kBadRequest, kNotFound, kMethodNotAllowed };
HttpVerdict JudgeHttpRequest(absl::string_view head);

// Checks behind GET /livez and /readyz. A check returns a text. If the text is empty, the answer is
// 200; otherwise the answer is 503 with the text. Called on the endpoint's thread; must not block.
struct HttpChecks {
  std::function<std::string()> live = [] { return std::string(); };
  std::function<std::string()> ready = [] { return std::string(); };
  // What a server that is ready cannot do now. It is the second line of /readyz, whose answer is
  // still 200: other servers could not do it either.
  std::function<std::string()> degraded = [] { return std::string(); };
};

// Serves from its own thread until it is destroyed.
class HttpEndpoint {
 public:
  // Listens on `address`, "host:port" with a numeric host or "localhost". Port 0 picks a free port.
  // FAILED_PRECONDITION if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Listen(
      const std::string& address, std::shared_ptr<const prometheus::Collectable> metrics,
      HttpChecks checks = {});
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  int port() const { return port_; }

 private:
  HttpEndpoint(int listener, int port, std::shared_ptr<const prometheus::Collectable> metrics,
               HttpChecks checks);

  const int port_;
  // A pipe. Closing its writing end tells the thread to stop.
  int stop_[2];
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_HTTP_ENDPOINT_H_
