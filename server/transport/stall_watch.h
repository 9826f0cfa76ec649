// Hangs up on clients that say nothing or take nothing.
#ifndef PHIMAP_SERVER_TRANSPORT_STALL_WATCH_H_
#define PHIMAP_SERVER_TRANSPORT_STALL_WATCH_H_

#include <cstdint>

#include "server/transport/timer_wheel.h"

namespace phimap {

class Connection;
class Http2Stream;

// Watches one connection: its handshake, the time without a call, answers that nobody reads on the
// connection or on a stream, and the client's closing after the last answer. Not thread-safe: it
// lives on its loop's thread.
class StallWatch {
 public:
  // `connection` has it as a member.
  explicit StallWatch(Connection& connection)
      : connection_(connection), idle_timer_(*this), stream_timer_(*this) {}

  // The client has handshake_time until its first frame, which EndHandshake tells.
  void BeginHandshake();
  void EndHandshake() { idle_timer_.Cancel(); }
  // The socket took so many bytes.
  void NoteWritten(int64_t bytes) { written_ += bytes; }
  // All that can be sent was sent: looks whether the connection is idle, or stalled.
  void Look();
  // Some stream has something to send.
  void WatchStreams();
  // All is sent and nothing more is taken: gives the client time to see it.
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
  // Gives the client max_stall from now to read the bytes that are waiting for it.
  void AwaitProgress();
  // Bytes in the socket that the client's system has not acknowledged.
  int64_t Unacknowledged() const;
  // Bytes that the client's system has acknowledged, counted from an arbitrary start.
  int64_t Taken() const { return written_ - Unacknowledged(); }
  int64_t UnsentBytes() const;
  // Whether the client's flow-control window is closed: for the connection, or for one of the
  // streams with output. A stream whose own window is open waits for the connection's.
  bool IsShut() const;
  bool IsShut(const Http2Stream& stream) const;

  Connection& connection_;
  // Bytes that the socket took.
  int64_t written_ = 0;
  // Value that Taken must reach before the idle timer's time, while the connection is stalled.
  int64_t taken_goal_ = 0;
  // Bytes that the client had not acknowledged when it was last looked at, all being sent.
  int64_t unacknowledged_ = 0;
  // Purpose for which the idle timer was last set. Stalled: the socket is full, or the client's
  // window is shut, and something waits.
  bool stalled_ = false;
  bool idle_ = false;
  IdleTimer idle_timer_;
  StreamTimer stream_timer_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_STALL_WATCH_H_
