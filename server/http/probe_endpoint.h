// What operators' tools ask for by HTTP: GET /metrics, which a Prometheus server scrapes, and the
// health checks GET /livez and /readyz.
//
// Guarantees: the endpoint has a thread of its own, so it answers while the threads of calls are
// busy, and bounded memory: 32 connections, 8 KiB of a request's head each. No client can keep
// others out: a connection ends after its answer, the oldest gives way to the next, and of the
// clients that leave their metrics unread, eight stay. A client that reads nothing for 10 seconds,
// or sends no request within 30, is disconnected.
#ifndef PHIMAP_SERVER_HTTP_PROBE_ENDPOINT_H_
#define PHIMAP_SERVER_HTTP_PROBE_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/host_names.h"
#include "server/observe/log.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace phimap {

// Checks behind GET /livez and /readyz. A check returns a text. If the text is empty, the answer is
// 200; otherwise the answer is 503 with the text. Called on the endpoint's thread; must not block.
struct ProbeChecks {
  std::function<std::string()> live = [] { return std::string(); };
  std::function<std::string()> ready = [] { return std::string(); };
  // What a server that is ready cannot do now. It is the second line of /readyz, whose answer is
  // still 200: other servers could not do it either.
  std::function<std::string()> degraded = [] { return std::string(); };
};

// Serves until it is destroyed.
class ProbeEndpoint {
 public:
  // Listens on `address`, "HOST:PORT". Port 0 picks a free port. A request whose header Host is not
  // in `names` is answered with 421. Connections from `header_proxies` begin with a header of the
  // PROXY protocol (Transport::Options). FAILED_PRECONDITION if the address cannot be bound.
  // `logger` must outlive the endpoint.
  static absl::StatusOr<std::unique_ptr<ProbeEndpoint>> Listen(
      const std::string& address, std::shared_ptr<const prometheus::Collectable> metrics,
      const Logger& logger, ProbeChecks checks = {}, HostNames names = {},
      std::vector<std::string> header_proxies = {});
  ~ProbeEndpoint();
  ProbeEndpoint(const ProbeEndpoint&) = delete;
  ProbeEndpoint& operator=(const ProbeEndpoint&) = delete;

  int port() const { return port_; }

 private:
  struct Parts;
  ProbeEndpoint(int port, std::unique_ptr<Parts> parts);

  const int port_;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_PROBE_ENDPOINT_H_
