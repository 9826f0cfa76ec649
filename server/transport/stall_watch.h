// Closes connections of clients that send nothing or do not read their answers.
#ifndef PHIMAP_SERVER_TRANSPORT_STALL_WATCH_H_
#define PHIMAP_SERVER_TRANSPORT_STALL_WATCH_H_

#include <cstdint>

#include "server/transport/timer_wheel.h"

namespace phimap {

class Connection;
class Http2Stream;

// Watches one connection: its handshake, its idle time, unread answers on the connection or on a
// stream, and whether the client closes it after the last answer. Not thread-safe: used on the
// loop's thread only.
class StallWatch {
 public:
  // `connection` owns the StallWatch as a member.
  explicit StallWatch(Connection& connection)
      : connection_(connection), idle_timer_(*this), stream_timer_(*this) {}

  // Starts the handshake: the client must send its first frame within handshake_time. The
  // connection then calls EndHandshake.
  void BeginHandshake();
  void EndHandshake() { idle_timer_.Cancel(); }
  // Notes that `bytes` bytes were written to the socket.
  void NoteWritten(int64_t bytes) { written_ += bytes; }
  // Checks whether the connection is idle or stalled. To be called when everything that can be sent
  // has been sent.
  void Look();
  // Starts to check streams for stalls. To be called when a stream has something to send.
  void WatchStreams();
  // Gives the client time to read the last bytes and to close the connection. To be called when
  // everything has been sent and no more calls are accepted.
  void BeginLinger();
  void Stop();

 private:
  struct IdleTimer final : Timer {
    explicit IdleTimer(StallWatch& watch) : watch(watch) {}
    void OnTime() override { watch.OnIdleTime(); }
    StallWatch& watch;
  };
  struct StreamTimer final : Timer {
    explicit StreamTimer(StallWatch& watch) : watch(watch) {}
    void OnTime() override { watch.EndStalledStreams(); }
    StallWatch& watch;
  };

  void OnIdleTime();
  void OnLingerTime();
  void EndStalledStreams();
  // Gives the client max_stall, from now on, to read the required bytes (ConnectionLimits::OwedOf).
  void AwaitProgress();
  // Bytes in the socket's send queue, which the client's system has not acknowledged.
  int64_t Unacknowledged() const;
  // Bytes that the client's system has acknowledged, except for a constant offset. Only differences
  // between two calls have a meaning.
  int64_t Taken() const { return written_ - Unacknowledged(); }
  int64_t UnsentBytes() const;
  // Whether a flow-control window of the client is closed. Without an argument: the connection's
  // window, if output waits for it. With a stream: the stream's own window. (A stream whose own
  // window is open only waits for other streams.)
  bool IsShut() const;
  bool IsShut(const Http2Stream& stream) const;

  Connection& connection_;
  // Bytes written to the socket.
  int64_t written_ = 0;
  // While the connection is stalled, the value that Taken must reach before the idle timer fires.
  int64_t taken_goal_ = 0;
  // While lingering, the result of Unacknowledged() at the last check.
  int64_t unacknowledged_ = 0;
  // State of the connection when the idle timer was last set. Stalled: output waits because the
  // socket is full or the client's window is closed.
  bool stalled_ = false;
  bool idle_ = false;
  IdleTimer idle_timer_;
  StreamTimer stream_timer_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_STALL_WATCH_H_
