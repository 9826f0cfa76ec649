#include "server/rpc/transport/connection.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/thread/steady_time.h"
#include "server/rpc/transport/http1_session.h"
#include "server/rpc/transport/http2_session.h"
#include "server/rpc/transport/proxy_header.h"

namespace phimap {

namespace {

// Size of one read from the socket.
constexpr size_t kReadBytes = 64 << 10;
// Size of one read from a stranger. It is smaller because HeldBytes does not count input that waits
// to be used.
constexpr size_t kStrangerReadBytes = 16 << 10;
// Maximum number of input bytes fed to the session between two checks of the clock. A call can be
// hardly larger than a frame head. More bytes could therefore hold hundreds of calls, which would
// take a millisecond.
constexpr size_t kFeedBytes = 4 << 10;
// Time that a connection may read, or send, in one round of the event loop.
constexpr auto kShare = std::chrono::microseconds(500);
// Time that a stranger may be read in one round. It is shorter because strangers may be many.
constexpr auto kStrangerShare = std::chrono::microseconds(100);

// Tells a client that speaks without TLS, perhaps HTTP/1.1, that this port requires it.
void TellOfTls(int fd) {
  constexpr absl::string_view kText =
      "This port requires TLS: use https, or, for gRPC, credentials of TLS.\n";
  const std::string answer =
      absl::StrCat("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n",
                   "Content-Length: ", kText.size(), "\r\n\r\n", kText);
  // If input stayed unread, closing the socket would reset the connection and drop the answer.
  std::array<char, 4096> rest;
  for (int i = 0; i < 16 && recv(fd, rest.data(), rest.size(), MSG_DONTWAIT) > 0; ++i) {
  }
  static_cast<void>(send(fd, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

char* ReadBuffer() {
  static thread_local std::array<char, kReadBytes> buffer;
  return buffer.data();
}

}  // namespace

Connection::Connection(EventLoop& loop, std::unique_ptr<Channel> channel, Peer peer,
                       const Owner& owner, Door door)
    : loop_(loop),
      owner_(owner),
      channel_(std::move(channel)),
      peer_(std::move(peer)),
      door_(door.acceptor != nullptr ? door : Door{&owner.acceptor, /*http1=*/false}),
      age_timer_(*this),
      go_away_timer_(*this),
      stall_watch_(*this),
      self_(std::make_shared<Connection*>(this)) {}

Connection::~Connection() {
  PHIMAP_CHECK(!in_session_);
  End();
  *self_ = nullptr;
}

void Connection::Start() {
  stall_watch_.BeginHandshake();
  if (!peer_.proxy) return BeginHandshake();
  state_ = State::kProxyHeader;
  Watch(EPOLLIN);
}

void Connection::ReadProxyHeader() {
  while (true) {
    const absl::StatusOr<size_t> missing = MissingProxyHeaderBytes(input_);
    if (!missing.ok()) return RefuseProxyHeader(missing.status().message());
    if (*missing == 0) return TakeProxyHeader();
    // Reads the socket itself, because the bytes of the channel, perhaps TLS, begin behind the
    // header.
    const ssize_t got = recv(channel_->fd(), ReadBuffer(), *missing, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      // A proxy that only looks whether the port is open sends nothing.
      return input_.empty() ? End() : RefuseProxyHeader("the connection ended within the header");
    }
    input_.append(ReadBuffer(), static_cast<size_t>(got));
  }
}

void Connection::TakeProxyHeader() {
  absl::StatusOr<std::optional<Peer>> client = ParseProxyHeader(input_);
  if (!client.ok()) return RefuseProxyHeader(client.status().message());
  input_ = std::string();
  if (client->has_value()) {
    if (!owner_.passed_to(**client)) return End();
    peer_ = **std::move(client);
  }
  BeginHandshake();
}

void Connection::RefuseProxyHeader(absl::string_view why) {
  owner_.blamed(peer_, ClientFault::kProxyHeader, why);
  End();
}

void Connection::BeginHandshake() {
  state_ = State::kHandshake;
  if (!channel_->needs_handshake()) return Open();
  Watch(EPOLLIN);
}

void Connection::ContinueHandshake() {
  if (handshaking_elsewhere_ || !Watch(0)) return;
  // The connection does not use the channel during the step. If the connection ends during the
  // step, it is not destroyed before the step is done.
  auto step = [self = self_, channel = channel_.get(), peer = peer_, loop = &loop_]() mutable {
    const Channel::State state = channel->Handshake(peer);
    loop->Post([self = std::move(self), state, peer = std::move(peer)] {
      if (*self != nullptr) (*self)->HandshakeStepDone(state, peer);
    });
  };
  auto drop = [self = self_, peer = peer_, loop = &loop_] {
    loop->Post([self, peer] {
      if (*self != nullptr) (*self)->HandshakeStepDone(Channel::State::kClosed, peer);
    });
  };
  owner_.run_handshake(peer_, std::move(step), std::move(drop));
  handshaking_elsewhere_ = true;
}

void Connection::HandshakeStepDone(Channel::State state, const Peer& peer) {
  handshaking_elsewhere_ = false;
  if (state_ == State::kEnded) return AwaitDestruction();
  try {
    peer_ = peer;
    GoOnAfterHandshakeStep(state);
  } catch (const std::bad_alloc&) {
    End();
  }
}

void Connection::GoOnAfterHandshakeStep(Channel::State state) {
  switch (state) {
    case Channel::State::kDone:
      return Open();
    case Channel::State::kWantsRead:
      Watch(EPOLLIN);
      return;
    case Channel::State::kWantsWrite:
      Watch(EPOLLOUT);
      return;
    case Channel::State::kClosed:
    case Channel::State::kFlooded:
    case Channel::State::kDistrusted:
      break;
  }
  const HandshakeFailure& failure = channel_->handshake_failure();
  if (failure.kind != nullptr) {
    owner_.handshake_failed(peer_, failure);
    if (failure.kind == absl::string_view("not_tls")) TellOfTls(channel_->fd());
  }
  End();
}

void Connection::Open() {
  state_ = State::kOpen;
  if (door_.http1 && !channel_->chose_http2()) {
    session_ = std::make_unique<Http1Session>(*this);
  } else {
    session_ = Http2Session::Open(*this);
  }
  if (session_ == nullptr) return End();  // no memory
  const absl::Duration age = owner_.limits.max_age;
  if (age != absl::InfiniteDuration()) loop_.timers().Set(age_timer_, SteadyNow() + age);
  // Nothing is sent before the client has begun to speak the session's protocol, because one that
  // speaks another would not understand the answer behind it.
  if (Watch(EPOLLIN) && channel_->has_buffered()) loop_.Again(*this);
}

bool Connection::Watch(uint32_t events) {
  if (added_ && events == watched_) return true;
  const bool watched = added_ ? loop_.Change(channel_->fd(), events, *this)
                              : loop_.Add(channel_->fd(), events, *this);
  added_ = added_ || watched;
  watched_ = events;
  if (!watched) {
    loop_.NoteMemoryFailures(1);
    End();
  }
  return watched;
}

void Connection::OnOutOfMemory() { End(); }

void Connection::OnReady(uint32_t events) {
  if (state_ == State::kEnded) return;
  if (state_ == State::kLingering) return DropInput();
  if (state_ < State::kOpen) {
    if (events == 0) return;
    return state_ == State::kHandshake ? ContinueHandshake() : ReadProxyHeader();
  }
  const bool readable = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  // Bytes that no socket holds, which epoll does not report.
  const bool left = input_used_ < input_.size() || channel_->has_buffered();
  if (readable || (left && !Full())) ReadShare();
  if (state_ == State::kEnded) return;
  if ((events & EPOLLRDHUP) != 0 && Full()) return End();
  if ((events & EPOLLOUT) != 0) write_blocked_ = false;
  // Sends only at the end of a round, or when the socket is writable again, so that answers are
  // sent together.
  if (events == 0 || (events & EPOLLOUT) != 0) Flush();
}

void Connection::ReadShare() {
  // Reads at most one share between two polls, whether an event or Again caused this call.
  if (std::exchange(last_share_, loop_.now()) == loop_.now()) return loop_.Again(*this);
  const auto until = std::chrono::steady_clock::now() + (stranger_ ? kStrangerShare : kShare);
  while (true) {
    while (input_used_ < input_.size()) {
      if (Full()) return WantFlush();
      const size_t size = std::min(kFeedBytes, input_.size() - input_used_);
      const auto fed = Feed(absl::string_view(input_).substr(input_used_, size));
      if (!fed.has_value()) return;
      input_used_ += *fed;
      if (std::chrono::steady_clock::now() >= until) return loop_.Again(*this);
    }
    input_.clear();
    input_used_ = 0;
    if (Full()) return WantFlush();
    const size_t wanted = stranger_ ? kStrangerReadBytes : kReadBytes;
    const Channel::Result got = channel_->Read(ReadBuffer(), wanted);
    if (got.state != Channel::State::kDone) return OnNothingRead(got.state);
    absl::string_view bytes(ReadBuffer(), got.bytes);
    while (!bytes.empty()) {
      const auto fed = Feed(bytes.substr(0, kFeedBytes));
      if (!fed.has_value()) return;
      bytes.remove_prefix(*fed);
      if (bytes.empty()) break;
      const bool full = Full();
      if (!full && std::chrono::steady_clock::now() < until) continue;
      input_.assign(bytes.data(), bytes.size());
      return full ? WantFlush() : loop_.Again(*this);
    }
    // If more data is readable, epoll reports it at the next poll.
    if (got.bytes < wanted && !channel_->has_buffered()) return;
    if (std::chrono::steady_clock::now() >= until) {
      if (channel_->has_buffered()) loop_.Again(*this);
      return;
    }
  }
}

void Connection::OnNothingRead(Channel::State state) {
  if (state == Channel::State::kClosed) {
    // A client of HTTP/1.1 may have said that nothing more follows, and still read its answer.
    return door_.http1 ? SendAndEnd() : End();
  }
  if (state == Channel::State::kDistrusted) return EndDistrusted();
  if (state != Channel::State::kFlooded) return;
  session_->EndForFault(ClientFault::kTlsRecords, "too many TLS records without data");
  SendAndEnd();
}

void Connection::BlameDistrusted() {
  owner_.blamed(peer_, ClientFault::kCertificate,
                "the TLS certificate of the client has expired or was revoked since the handshake");
}

void Connection::EndDistrusted() {
  BlameDistrusted();
  End();
}

std::optional<size_t> Connection::Feed(absl::string_view bytes) {
  if (!greeted_ && BeginsAsProxyHeader(bytes)) {
    EndForStrayHeader();
    return std::nullopt;
  }
  // Without TLS, a client that may speak both shows by its first bytes which one it speaks.
  if (!greeted_ && door_.http1 && !channel_->chose_http2() && absl::StartsWith(bytes, "PRI ")) {
    session_ = Http2Session::Open(*this);
    if (session_ == nullptr) {
      End();
      return std::nullopt;
    }
  }
  const Session::Fed fed = InSession([&] { return session_->Feed(bytes); });
  if (fed.end == Session::Fed::End::kOtherProtocol) {
    EndOtherProtocol(bytes);
    return std::nullopt;
  }
  if (fed.end == Session::Fed::End::kFailed || end_wanted_) {
    SendAndEnd();
    return std::nullopt;
  }
  WantFlush();
  return fed.used;
}

size_t Connection::HeldBytes() const {
  return output_.size() + (session_ == nullptr ? 0 : session_->held_bytes());
}

void Connection::EndForStrayHeader() {
  owner_.blamed(peer_, ClientFault::kNotHttp2,
                "the connection begins with a header of the PROXY protocol, which only the "
                "addresses of --proxy_protocol may send");
  End();
}

void Connection::EndOtherProtocol(absl::string_view bytes) {
  constexpr absl::string_view kText =
      "This port speaks gRPC, which is HTTP/2. The metrics and the health checks are on the port "
      "that --http of phimapd names.\n";
  owner_.blamed(peer_, ClientFault::kNotHttp2, "the connection does not begin as HTTP/2 does");
  output_.Pop(output_.size());
  if (!bytes.empty() && absl::ascii_isupper(static_cast<unsigned char>(bytes[0]))) {
    output_.Append(absl::StrCat("HTTP/1.1 505 HTTP Version Not Supported\r\n",
                                "Content-Type: text/plain\r\nConnection: close\r\n",
                                "Content-Length: ", kText.size(), "\r\n\r\n", kText));
    channel_->Write(output_);
    channel_->Shutdown();
  }
  End();
}

void Connection::CloseIdleStranger() {
  if (!stranger_ || SteadyNow() - began_ < owner_.limits.stranger_time) return;
  owner_.blamed(peer_, ClientFault::kNoCall,
                "no call of the connection was admitted, and others need its place");
  End();
}

void Connection::SendAndEnd() {
  Frame();
  channel_->Write(output_);
  End();
}

bool Connection::Frame() {
  return InSession([&] { return session_->Frame(); });
}

bool Connection::SendShare() {
  const auto until = std::chrono::steady_clock::now() + kShare;
  while (true) {
    if (!Frame()) return false;
    if (write_blocked_) return true;
    const bool full = OutputFull();
    const size_t unsent = output_.size();
    const Channel::State sent = channel_->Write(output_);
    if (sent == Channel::State::kDistrusted) {
      BlameDistrusted();
      return false;
    }
    if (sent == Channel::State::kClosed) return false;
    stall_watch_.NoteWritten(static_cast<int64_t>(unsent - output_.size()));
    write_blocked_ = sent == Channel::State::kWantsWrite;
    // A write that stopped midway has made space in the output. It is filled again, because a
    // client is read as long as the output has space.
    if (write_blocked_) return Frame();
    if (!full) return true;
    loop_.Again(*this);  // there may be more to frame, and to read
    if (std::chrono::steady_clock::now() >= until) return true;
  }
}

void Connection::Flush() {
  flushing_ = true;
  const bool open = SendShare();
  flushing_ = false;
  if (!open || condemned_) return End();
  const bool empty = session_->streams() == 0;
  const bool done = session_->over() && output_.empty();
  if (done ||
      (gone_away_ && empty && output_.empty() && !write_blocked_ && !session_->wants_write())) {
    if (empty && (gone_away_ || door_.http1)) return Linger();
    channel_->Shutdown();
    return End();
  }
  const bool read = !Full();
  // Input that was read before the connection was full, and bytes that the channel holds, are in no
  // socket that epoll would report.
  if (read && (input_used_ < input_.size() || channel_->has_buffered())) loop_.Again(*this);
  // A client that is not read may still leave, which ends its work.
  constexpr uint32_t kGone = EPOLLRDHUP;
  const uint32_t wanted = read ? static_cast<uint32_t>(EPOLLIN) : (door_.http1 ? kGone : 0);
  const bool watched = Watch(wanted | (write_blocked_ ? static_cast<uint32_t>(EPOLLOUT) : 0));
  if (watched) stall_watch_.Look();
}

// If the server closed the socket while the client still sends (window updates, pings), the system
// would reset the connection and lose answers in flight. Input is therefore read and dropped until
// the client closes.
void Connection::Linger() {
  if (state_ != State::kOpen) return;
  state_ = State::kLingering;
  channel_->Shutdown();
  if (Watch(EPOLLIN)) stall_watch_.BeginLinger();
}

void Connection::DropInput() {
  if (channel_->Read(ReadBuffer(), kReadBytes).state == Channel::State::kClosed) End();
}

void Connection::BeginGoAway() {
  if (state_ != State::kOpen || std::exchange(going_away_, true)) return;
  session_->AnnounceEnd();
  loop_.timers().Set(go_away_timer_, SteadyNow() + owner_.limits.go_away_notice);
  WantFlush();
}

void Connection::OnAge() {
  if (std::exchange(aged_, true)) return End();
  BeginGoAway();
}

void Connection::FinishGoAway() {
  if (state_ < State::kOpen) return End();
  if (state_ != State::kOpen || std::exchange(gone_away_, true)) return;
  going_away_ = true;
  go_away_timer_.Cancel();
  session_->RefuseCalls();
  const absl::Duration grace = owner_.limits.max_age_grace;
  if (aged_ && grace != absl::InfiniteDuration()) {
    loop_.timers().Set(age_timer_, SteadyNow() + grace);
  }
  WantFlush();
}

void Connection::Close() {
  if (state_ == State::kOpen && !in_session_) {
    Frame();
    channel_->Write(output_);
  }
  End();
}

void Connection::End() {
  if (in_session_) {
    end_wanted_ = true;
    return;
  }
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  peak_bytes_ =
      sizeof(Connection) +
      std::max(session_ == nullptr ? 0 : session_->peak_bytes() + output_.size(), HeldBytes());
  age_timer_.Cancel();
  go_away_timer_.Cancel();
  stall_watch_.Stop();
  if (added_) loop_.Remove(channel_->fd(), *this);
  loop_.Forget(*this);
  if (session_ != nullptr) session_->CloseStreams();
  session_ = nullptr;
  // A running handshake step still uses the channel; HandshakeStepDone then goes on.
  if (!handshaking_elsewhere_) AwaitDestruction();
}

void Connection::AwaitDestruction() { loop_.timers().Set(ended_timer_, loop_.now()); }

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
  const bool idle = connection_.streams() == 0;
  const bool half_head = connection_.session_->holds_half_head();
  if (stalled && stalled_) {
    if (Taken() >= taken_goal_) AwaitProgress();
    return;
  }
  if (stalled == stalled_ && idle == idle_ && half_head == half_head_) return;
  stalled_ = stalled;
  idle_ = idle;
  half_head_ = half_head;
  const ConnectionLimits& limits = connection_.owner_.limits;
  if (stalled) {
    AwaitProgress();
  } else if (idle) {
    // A later head has as much time as the first.
    connection_.loop_.timers().Set(
        idle_timer_,
        connection_.loop_.now() + (half_head ? limits.handshake_time : limits.max_idle));
  } else {
    idle_timer_.Cancel();
  }
}

void StallWatch::OnIdleTime() {
  if (connection_.state_ == Connection::State::kLingering) return OnLingerTime();
  if (connection_.state_ == Connection::State::kProxyHeader) {
    return connection_.RefuseProxyHeader("the header did not arrive in time");
  }
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
  return static_cast<int64_t>(connection_.output_.size() + connection_.session_->unsent_bytes());
}

bool StallWatch::IsShut() const { return connection_.session_->IsShut() && UnsentBytes() > 0; }

void StallWatch::EndStalledStreams() {
  const absl::Time before = connection_.loop_.now() - connection_.owner_.limits.max_stall;
  if (connection_.session_->EndStalledStreams(before, stalled_)) WatchStreams();
}

void StallWatch::WatchStreams() {
  if (stream_timer_.is_set()) return;
  connection_.loop_.timers().Set(stream_timer_,
                                 connection_.loop_.now() + connection_.owner_.limits.max_stall / 4);
}

}  // namespace phimap
