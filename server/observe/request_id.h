// Identifies one call among all others, in the log and in the error that its client got.
#ifndef PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_
#define PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace phimap {

// 16 hexadecimal digits, made on first use: a successful call has none. No two of one process are
// equal; two of different processes are with a probability of 2^-64. The identifiers do not reveal
// how many calls there were, and are not secret. Thread-safe.
class RequestId {
 public:
  RequestId() = default;
  RequestId(const RequestId&) = delete;
  RequestId& operator=(const RequestId&) = delete;

  // Returns an equal text at every call.
  std::string Text() const;

 private:
  // 0 until it is asked for.
  mutable std::atomic<uint64_t> number_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_
