// Limits on a client's use of a connection.
#ifndef PHIMAP_SERVER_TRANSPORT_CONNECTION_LIMITS_H_
#define PHIMAP_SERVER_TRANSPORT_CONNECTION_LIMITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace phimap {

struct ConnectionLimits {
  // Maximum open streams. A further stream is reset before anything is allocated for it.
  uint32_t max_streams = 1024;
  // Maximum size of a request's headers: names and values, plus 32 bytes for each field.
  size_t max_header_bytes = 16 << 10;
  // Initial flow-control windows in bytes. The window of a stream reopens when its handler consumes
  // the bytes. The window of the connection reopens when the bytes arrive.
  uint32_t stream_window = 32 << 10;
  uint32_t connection_window = 8 << 20;
  // Maximum bytes of answers that wait for the socket, on a connection that has made a call which
  // was admitted. Above this limit, no more answers are put into frames.
  size_t max_output_bytes = 256 << 10;
  // Maximum bytes that a stranger's connection holds for its streams, frames and answers; half of
  // them for answers that wait for the socket. A stranger is a connection of which no call has been
  // admitted yet. Nothing more is read from a connection that holds its maximum.
  size_t max_stranger_bytes = 128 << 10;
  // A client that has not sent its first HTTP/2 frame within this time is disconnected, because its
  // connection occupies a descriptor.
  absl::Duration handshake_time = absl::Seconds(5);
  // A client without a call for this long is disconnected. It reconnects by itself for its next
  // call.
  absl::Duration max_idle = absl::Minutes(30);
  // Age at which a connection is ended gracefully. Clients then reconnect, perhaps to another
  // server.
  absl::Duration max_age = absl::InfiniteDuration();
  // Time for which calls are still accepted after the client was asked (by a GOAWAY) to send new
  // calls elsewhere.
  absl::Duration go_away_notice = absl::Seconds(2);
  // Time that a client has to finish sending a request that has already been answered. If a reset
  // followed the answer at once, HAProxy would drop the answer.
  absl::Duration linger = absl::Milliseconds(500);
  // Maximum frames per second that carry neither call nor data, such as pings.
  int max_control_frames = 2'000;
  // Maximum bytes per second of header fields that are dropped because their request exceeds
  // max_header_bytes. Both limits count bytes in the same way. With header compression, one byte
  // may refer to a field of 4 KiB again and again; each time, the whole field is processed, which
  // takes about a nanosecond per byte.
  size_t max_dropped_header_bytes = 1 << 20;
  // Time for which a client may leave an answer unread, on one stream or on all of them. Unread
  // answers occupy memory that other requests need.
  absl::Duration max_stall = absl::Minutes(5);
  // Time for which a stranger may leave an answer unread. It is shorter because its answers are
  // small.
  absl::Duration max_stranger_stall = absl::Seconds(10);
  // Time after which a stranger's connection may be ended to make room, when nearly all connections
  // that the server may have are open.
  absl::Duration stranger_time = absl::Seconds(5);
  // In each period of max_stall, a client must read at this rate on average, or read all bytes that
  // were waiting when the period began. Otherwise a client could keep the memory occupied by
  // reading a byte now and then.
  int64_t min_bytes_per_second = 1024;

  // Maximum bytes of streams, frames and answers. A stream that waits takes about a kilobyte.
  size_t MaxHeldBytes(bool stranger) const {
    constexpr size_t kSession = 256 << 10;
    constexpr size_t kStream = 1536;
    return stranger ? max_stranger_bytes
                    : max_output_bytes + kSession + size_t{max_streams} * kStream;
  }
  size_t MaxOutputBytes(bool stranger) const {
    return stranger ? std::min(max_output_bytes, max_stranger_bytes / 2) : max_output_bytes;
  }
  absl::Duration MaxStall(bool stranger) const {
    return stranger ? std::min(max_stall, max_stranger_stall) : max_stall;
  }

  // Bytes that a client must read within max_stall if `waiting` bytes wait for it; at least one.
  int64_t OwedOf(int64_t waiting) const {
    const auto floor = static_cast<int64_t>(static_cast<double>(min_bytes_per_second) *
                                            absl::ToDoubleSeconds(max_stall));
    return std::clamp<int64_t>(floor, 1, std::max<int64_t>(1, waiting));
  }
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_CONNECTION_LIMITS_H_
