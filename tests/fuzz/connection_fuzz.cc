// Checks three things for any bytes that a client may send: the connection ends when the client
// closes it, each call that began has ended, and no memory stays reserved. The input is everything
// that the client sends, beginning with the HTTP/2 preface.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "core/status/check.h"
#include "tests/fuzz/fuzz_calls.h"
#include "tests/server/support/loop_server.h"

namespace phimap {
namespace {

// Sends all data, and reads all answers. Reads whenever sending would block, because the server may
// wait for its answers to be read.
void Converse(int fd, const uint8_t* data, size_t size) {
  std::array<char, 65536> answers;
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      data += sent;
      size -= static_cast<size_t>(sent);
    } else if (errno != EAGAIN) {
      break;  // the server has hung up
    } else if (read(fd, answers.data(), answers.size()) <= 0) {
      break;
    }
  }
  shutdown(fd, SHUT_WR);
  while (read(fd, answers.data(), answers.size()) > 0) {
  }
  close(fd);
}

}  // namespace
}  // namespace phimap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static phimap::FuzzCalls calls(std::nullopt);
  static phimap::testing::LoopServer server(calls.dispatcher);
  phimap::Converse(server.Connect(), data, size);
  server.AwaitNoConnections();
  PHIMAP_CHECK(calls.counts.begun == calls.counts.ended);
  PHIMAP_CHECK(calls.memory.held_bytes() == 0);
  return 0;
}
