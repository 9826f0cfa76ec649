// Checks three things for any bytes that a client may send: the connection ends when the client
// closes it, each call that began has ended, and no memory stays reserved. The input is everything
// that the client sends, beginning with the HTTP/2 preface.

#include <cstddef>
#include <cstdint>

#include "core/status/check.h"
#include "tests/fuzz/converse.h"
#include "tests/fuzz/fuzz_calls.h"
#include "tests/server/support/loop_server.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static phimap::FuzzCalls calls(std::nullopt);
  static phimap::testing::LoopServer server(calls.dispatcher);
  phimap::Converse(server.Connect(), data, size);
  server.AwaitNoConnections();
  PHIMAP_CHECK(calls.counts.begun == calls.counts.ended);
  PHIMAP_CHECK(calls.memory.held_bytes() == 0);
  return 0;
}
