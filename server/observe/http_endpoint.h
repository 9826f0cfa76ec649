// The HTTP endpoint that a Prometheus server scrapes: GET /metrics.
//
// Our own small listener and not prometheus::Exposer: that one's worker threads have stacks of
// 100 KiB, of which glibc takes 60 for OpenBLAS's static thread-local storage, and any error answer
// of its web server then runs off the end.
//
// Guarantees: one thread, bounded memory (32 connections, 8 KiB of request each), and no client can
// block it: a connection that does not send or read within 10 seconds is closed, and when all 32
// are in use, the one that has been silent the longest is closed for the next. Anything but a GET
// of /metrics is answered with 404, 405, 400 or 431; connections are closed after one answer.
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

// Kind of answer to a request's head (up to the empty line), apart from the metrics themselves.
enum class HttpVerdict { kMetrics, kLive, kReady, kBadRequest, kNotFound, kMethodNotAllowed };
HttpVerdict JudgeHttpRequest(absl::string_view head);

// Answers of GET /livez and /readyz: 200 while the text is empty, 503 with the text otherwise.
// Called on the endpoint's thread; they must not wait.
struct HttpChecks {
  std::function<std::string()> live = [] { return std::string(); };
  std::function<std::string()> ready = [] { return std::string(); };
};

// Serves from its own thread until it is destroyed.
class HttpEndpoint {
 public:
  // Listens on `address`, "host:port" with a numeric host or "localhost"; port 0 picks a free one.
  // FAILED_PRECONDITION when it cannot be bound.
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
  // Closing the writing end tells the thread to stop.
  int stop_[2];
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_HTTP_ENDPOINT_H_
