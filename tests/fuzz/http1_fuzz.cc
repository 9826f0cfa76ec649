// Checks that a connection of HTTP/1.1 stays alive or ends in order, whatever its client sends:
// each stream is closed once, and no more of a body is passed on than its window allows. The input
// is everything that the client sends. The paths of /echo, /hold, /silent and /large/9999 choose
// what the handler does.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status/check.h"
#include "tests/fuzz/converse.h"
#include "tests/server/rpc/transport/connection_fixture.h"
#include "tests/server/support/loop_server.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using phimap::testing::ScriptedAcceptor;
  ScriptedAcceptor acceptor;
  {
    phimap::testing::LoopServer server(acceptor);
    phimap::Converse(server.Connect(/*http1=*/true), data, size);
    server.AwaitNoConnections();
  }
  for (const auto& events : acceptor.events) {
    PHIMAP_CHECK(events->closed <= 1);
    PHIMAP_CHECK(events->path != "/hold" || events->data_bytes <= (36u << 10));
  }
  return 0;
}
