// Limits on a client's use of a connection.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_LIMITS_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_LIMITS_H_

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
  // Time that calls in progress have to end after that. Then the connection is closed with them.
  absl::Duration max_age_grace = absl::InfiniteDuration();
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

// A client that opens streams only to reset them makes the server work for nothing. But honest
// clients reset streams too, when they cancel a call or its deadline passes. Therefore only a
// stream that was reset before any answer, and before it was kLongLived old, uses up the allowance.
// Each other stream that ends earns one more reset, so that a busy client may cancel as many calls
// as it completes. The allowance also refills by kPerSecond, up to kBurst. Not thread-safe.
class ResetAllowance {
 public:
  static constexpr int kBurst = 2'000;
  static constexpr int kPerSecond = 200;
  static constexpr absl::Duration kLongLived = absl::Seconds(1);

  // Notes the end of a stream that was answered, at least in part, or was long-lived.
  void Earn() { left_ = std::min<double>(left_ + 1, kBurst); }
  // Notes the reset of any other stream. Returns false if there were too many.
  bool Take(absl::Time now) {
    const double seconds = absl::ToDoubleSeconds(std::min(now - last_, absl::Hours(1)));
    last_ = now;
    left_ = std::min<double>(left_ + seconds * kPerSecond, kBurst);
    left_ -= 1;
    return left_ >= 0;
  }

 private:
  double left_ = kBurst;
  absl::Time last_ = absl::InfinitePast();
};

// Limits useless work that a client can cause: empty frames, oversized headers and resets.
//
// Frames and header bytes are counted in periods of one second. A period begins with the first
// event after the end of the previous period. Not thread-safe.
class FloodGuard {
 public:
  // `limits` must outlive the guard.
  explicit FloodGuard(const ConnectionLimits& limits) : limits_(limits) {}

  // Counts a frame that carries neither call nor data. Returns false if there are too many.
  bool CountControlFrame(absl::Time now) {
    StartSecond(now);
    return ++control_frames_ <= limits_.max_control_frames;
  }
  // Counts a header field that is dropped because its call exceeds max_header_bytes. Returns false
  // if too many bytes were dropped.
  bool CountDroppedHeader(size_t bytes, absl::Time now) {
    StartSecond(now);
    dropped_header_bytes_ += bytes;
    return dropped_header_bytes_ <= limits_.max_dropped_header_bytes;
  }
  // Counts a stream that the client resets. Returns false if the client does little else than reset
  // streams. `answered`: the stream was answered at least in part, or was long-lived.
  bool CountReset(bool answered, absl::Time now) { return answered || resets_.Take(now); }
  // Notes that an answered stream has ended, which allows the client one more reset.
  void EarnReset() { resets_.Earn(); }

 private:
  void StartSecond(absl::Time now) {
    if (now - second_ < absl::Seconds(1)) return;
    second_ = now;
    control_frames_ = 0;
    dropped_header_bytes_ = 0;
  }

  const ConnectionLimits& limits_;
  absl::Time second_ = absl::InfinitePast();
  int control_frames_ = 0;
  size_t dropped_header_bytes_ = 0;
  ResetAllowance resets_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_LIMITS_H_
