// The limits of what a message may hold.
#ifndef PHIMAP_SERVER_RPC_LIMITS_H_
#define PHIMAP_SERVER_RPC_LIMITS_H_

#include <cstdint>

namespace phimap {

inline constexpr int64_t kMaxRowsPerMessage = 65536;
inline constexpr int64_t kMaxColumnsPerMessage = 65536;
// Room in an answer for everything but the features.
inline constexpr int64_t kEnvelopeBytes = 1024;
inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 1000;

struct RpcLimits {
  // Largest message either way.
  int64_t max_message_bytes = int64_t{64} << 20;
  // Requests of one TransformStream that are read and not answered yet.
  int stream_window = 32;
  // Their bytes and those of their answers; one request is always let in.
  int64_t stream_window_bytes = int64_t{16} << 20;
  // Answers of all calls that are not sent yet.
  int64_t answer_bytes = int64_t{256} << 20;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_LIMITS_H_
