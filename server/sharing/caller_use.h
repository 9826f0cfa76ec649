// What one caller holds of that which callers share. A caller is known by its token or TLS
// certificate; without either, by its host.
#ifndef PHIMAP_SERVER_SHARING_CALLER_USE_H_
#define PHIMAP_SERVER_SHARING_CALLER_USE_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace phimap {

struct CallerUse {
  // Bytes of the memory budget (RequestMemory).
  std::atomic<int64_t> memory_bytes{0};
  // Bytes of input that waits outside the budget.
  std::atomic<int64_t> waiting_bytes{0};
  // Whether the caller has the role admin.
  std::atomic<bool> administers{false};
};

// Null for a caller whose use is not limited: a client on the Unix socket of a server without
// tokens.
using CallerPointer = std::shared_ptr<CallerUse>;

}  // namespace phimap

#endif  // PHIMAP_SERVER_SHARING_CALLER_USE_H_
