// Limits on a client's use of a connection.
#ifndef PHIMAP_SERVER_TRANSPORT_CONNECTION_LIMITS_H_
#define PHIMAP_SERVER_TRANSPORT_CONNECTION_LIMITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace phimap {

struct ConnectionLimits {
  // Streams that a client may have open; one more is reset before it costs anything.
  uint32_t max_streams = 1024;
  // Names and values of a request's headers, with 32 bytes for each.
  size_t max_header_bytes = 16 << 10;
  // Bytes of a body that a client may send before anyone has taken it.
  uint32_t stream_window = 32 << 10;
  uint32_t connection_window = 8 << 20;
  // Answers that wait for the socket; more are not even framed.
  size_t max_output_bytes = 256 << 10;
  // A client that sends nothing, or does not end its handshake, is disconnected: it takes a
  // descriptor.
  absl::Duration handshake_time = absl::Seconds(5);
  // A client without a call for so long is disconnected too; it connects again by itself when it
  // has one.
  absl::Duration max_idle = absl::Minutes(30);
  // After which a connection is ended gracefully; clients then connect again, perhaps elsewhere.
  absl::Duration max_age = absl::InfiniteDuration();
  // Time for which calls are accepted after the first GOAWAY.
  absl::Duration go_away_notice = absl::Seconds(2);
  // Time that a client has to end a request that was answered before its end. A reset that follows
  // the answer at once makes HAProxy drop the answer.
  absl::Duration linger = absl::Milliseconds(500);
  // Frames of a second that carry no call and no data, pings for instance.
  int max_control_frames = 2'000;
  // Header fields of a second beyond max_header_bytes, counted as those are: a byte may name a
  // field of 4 KiB repeatedly, and each time its bytes are processed, a nanosecond each.
  size_t max_dropped_header_bytes = 1 << 20;
  // Time for which a client may leave answers unread, on one stream or on all: they take memory
  // from other clients.
  absl::Duration max_stall = absl::Minutes(5);
  // Within each such time it must read so much, or the bytes that waited when the time began: a
  // client that reads a byte now and then occupies as much memory as one that reads nothing.
  int64_t min_bytes_per_second = 1024;

  // Bytes that a client with `waiting` bytes to take must take within max_stall; at least one.
  int64_t OwedOf(int64_t waiting) const {
    const auto floor = static_cast<int64_t>(static_cast<double>(min_bytes_per_second) *
                                            absl::ToDoubleSeconds(max_stall));
    return std::clamp<int64_t>(floor, 1, std::max<int64_t>(1, waiting));
  }
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_CONNECTION_LIMITS_H_
