// Identifies one call among all others, in the log and in the error that its client got.
#ifndef PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_
#define PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace phimap {

// An id of a request: 16 hexadecimal digits. It is made on first use, so a successful call has no
// id. Ids of one process are all different. Ids of two processes are equal with probability 2^-64.
// An id does not reveal the number of calls, and is not secret. Thread-safe.
class RequestId {
 public:
  RequestId() = default;
  RequestId(const RequestId&) = delete;
  RequestId& operator=(const RequestId&) = delete;

  // Returns the same text at every call.
  std::string Text() const;

 private:
  // 0 until the first call of Text.
  mutable std::atomic<uint64_t> number_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_
