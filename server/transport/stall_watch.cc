#include "server/transport/stall_watch.h"

#include <linux/sockios.h>
#include <nghttp2/nghttp2.h>
#include <sys/ioctl.h>

#include "server/sync/steady_time.h"
#include "server/transport/connection.h"

namespace phimap {
namespace {

// Time in which a lingering client must close the connection, or at least read more.
constexpr absl::Duration kLinger = absl::Seconds(1);

}  // namespace

void StallWatch::BeginHandshake() {
  connection_.loop_.timers().Set(idle_timer_,
                                 SteadyNow() + connection_.owner_.limits.handshake_time);
}

void StallWatch::BeginLinger() {
  unacknowledged_ = 0;
  connection_.loop_.timers().Set(idle_timer_, connection_.loop_.now() + kLinger);
}

void StallWatch::Stop() {
  idle_timer_.Cancel();
  stream_timer_.Cancel();
}

int64_t StallWatch::Unacknowledged() const {
  int left = 0;
  return ioctl(connection_.channel_->fd(), SIOCOUTQ, &left) == 0 ? left : 0;
}

void StallWatch::OnLingerTime() {
  const int64_t left = Unacknowledged();
  if (left == 0 || left == unacknowledged_) return connection_.End();
  unacknowledged_ = left;  // the client is still reading
  connection_.loop_.timers().Set(idle_timer_, connection_.loop_.now() + kLinger);
}

void StallWatch::Look() {
  if (!connection_.greeted_) return;  // the timer still limits the time of the handshake
  const bool stalled = connection_.write_blocked_ || IsShut() || connection_.Full();
  const bool idle = connection_.streams_.empty();
  if (stalled && stalled_) {
    if (Taken() >= taken_goal_) AwaitProgress();
    return;
  }
  if (stalled == stalled_ && idle == idle_) return;
  stalled_ = stalled;
  idle_ = idle;
  if (stalled) {
    AwaitProgress();
  } else if (idle) {
    connection_.loop_.timers().Set(idle_timer_,
                                   connection_.loop_.now() + connection_.owner_.limits.max_idle);
  } else {
    idle_timer_.Cancel();
  }
}

void StallWatch::OnIdleTime() {
  if (connection_.state_ == Connection::State::kLingering) return OnLingerTime();
  if (!connection_.greeted_) return connection_.End();
  if (!stalled_) return connection_.FinishGoAway();
  // Although the socket was full at every check, the client may have read all the time.
  if (Taken() >= taken_goal_) return AwaitProgress();
  connection_.End();
}

void StallWatch::AwaitProgress() {
  const int64_t unacknowledged = Unacknowledged();
  taken_goal_ =
      written_ - unacknowledged + connection_.owner_.limits.OwedOf(unacknowledged + UnsentBytes());
  connection_.loop_.timers().Set(
      idle_timer_,
      connection_.loop_.now() + connection_.owner_.limits.MaxStall(connection_.stranger()));
}

int64_t StallWatch::UnsentBytes() const {
  size_t bytes = connection_.output_.size();
  for (const auto& [id, stream] : connection_.streams_) bytes += stream->unsent_bytes();
  return static_cast<int64_t>(bytes);
}

bool StallWatch::IsShut() const {
  return nghttp2_session_get_remote_window_size(connection_.session_) <= 0 && UnsentBytes() > 0;
}

bool StallWatch::IsShut(const Http2Stream& stream) const {
  return nghttp2_session_get_stream_remote_window_size(connection_.session_, stream.id_) <= 0;
}

void StallWatch::EndStalledStreams() {
  const absl::Time before = connection_.loop_.now() - connection_.owner_.limits.max_stall;
  bool unsent = false;
  for (auto& [id, stream] : connection_.streams_) {
    if (stream->body_.empty()) continue;
    // On a stalled connection, only a stream whose own window is closed is to blame.
    const bool to_blame = !stalled_ || IsShut(*stream);
    if (stream->progress_ <= before || (stream->owes_since_ <= before && to_blame)) {
      stream->Reset(ResetCode::kCancel);  // the stream closes when the frame is sent
    } else {
      unsent = true;
    }
  }
  if (unsent) WatchStreams();
}

void StallWatch::WatchStreams() {
  if (stream_timer_.is_set()) return;
  connection_.loop_.timers().Set(stream_timer_,
                                 connection_.loop_.now() + connection_.owner_.limits.max_stall / 4);
}

}  // namespace phimap
