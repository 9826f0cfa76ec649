// Checks that the port of metrics and health checks ends each connection, whatever its client
// sends, and answers the next one. The input is everything that the client sends.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status/check.h"
#include "prometheus/registry.h"
#include "server/http/probe_endpoint.h"
#include "tests/fuzz/converse.h"
#include "tests/server/support/client_socket.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const phimap::Logger logger(phimap::LogLevel::kOff);
  static const auto endpoint = phimap::ProbeEndpoint::Listen(
      "127.0.0.1:0", std::make_shared<prometheus::Registry>(), logger);
  PHIMAP_CHECK(endpoint.ok());
  phimap::Converse(phimap::testing::ConnectToLoopback((*endpoint)->port()), data, size);
  return 0;
}
