// A client that sends bytes as they are.
#ifndef PHIMAP_TESTS_FUZZ_CONVERSE_H_
#define PHIMAP_TESTS_FUZZ_CONVERSE_H_

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace phimap {

// Sends all data, and reads all answers. Reads whenever sending would block, because the server may
// wait for its answers to be read. Closes `fd`.
inline void Converse(int fd, const uint8_t* data, size_t size) {
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

}  // namespace phimap

#endif  // PHIMAP_TESTS_FUZZ_CONVERSE_H_
