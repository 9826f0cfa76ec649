// Base of all calls.
//
// A call lives on the thread of its stream's event loop: its functions run there, one at a time,
// except those that say "from any thread", and so do the functions it calls. So a call needs no
// lock. Work that takes long, or waits, is done elsewhere and comes back by Post.
//
// Guarantees: ends exactly once, with one status, counted and logged; a client that disconnects, or
// whose deadline passes, ends it at once, and tasks that return later do not touch it. For a caller
// without permission no call is made at all.
#ifndef PHIMAP_SERVER_CALLS_CALL_H_
#define PHIMAP_SERVER_CALLS_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "server/calls/message_cost.h"
#include "server/calls/message_source.h"
#include "server/calls/method.h"
#include "server/observe/request_id.h"
#include "server/transport/stream.h"
#include "server/transport/timer_wheel.h"

namespace phimap {

class Call : public StreamHandler, public std::enable_shared_from_this<Call> {
 public:
  ~Call() override;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The dispatcher has given the stream to the call.
  void Begin();

  // Ends those calls of this thread's loop whose client has been silent for longer than `silent`,
  // or all calls, with UNAVAILABLE (SERVER_SHUTTING_DOWN): the server is shutting down. Calls that
  // have ended are reset if their client takes nothing of the answer.
  static void EndSilentCalls(absl::Duration silent);
  static void EndAllCalls();

  // The following may be called from any thread. Time at which the request's headers had arrived.
  absl::Time started() const { return started_; }
  // InfiniteFuture when the client set none.
  absl::Time deadline() const { return deadline_; }
  // Becomes true when the client gives up, or its deadline passes.
  const std::atomic<bool>* cancelled() const { return &cancelled_; }
  const CallEnvironment& environment() const { return environment_; }
  // "ipv4:127.0.0.1:41234".
  const std::string& peer() const { return peer_; }

  void OnData(absl::string_view bytes) final;
  void OnRequestEnd() final;
  void OnSent() final;
  void OnClosed(ResetCode code) final;

 protected:
  Call(const CallStart& start, const MessageCost& request_cost,
       MessageSource::WithoutCapacity without_capacity);

  // When bytes of the request came last; at first, when it began.
  absl::Time last_data() const { return last_data_; }
  // Since when the call waits for its client; InfiniteFuture while it does not.
  virtual absl::Time waits_since() const { return absl::InfiniteFuture(); }
  // The request begins; nothing of it was read.
  virtual void OnBegin() = 0;
  // A message is complete, or none follows: see source().
  virtual void OnRequestProgress() = 0;
  // Called when everything that was passed to Send has been sent.
  virtual void OnAnswersSent() {}
  // The call is over, before OnEnd: timers are cancelled here, on the loop's thread, since the call
  // may be destroyed on another.
  virtual void OnOver() {}
  // Called last, when the call has ended with `status` for any reason, and before the client learns
  // of the end.
  virtual void OnEnd(const absl::Status& status) { static_cast<void>(status); }

  EventLoop& loop() { return *loop_; }
  bool OnLoop() const { return loop_->OnThisThread(); }
  // From any thread: runs `task` on the loop's thread, unless the call has ended. Keeps the call
  // alive until then.
  void Post(std::function<void()> task);

  bool over() const { return over_; }
  // Bytes of the request wait in the window for the source to take them.
  MessageSource& source() { return source_; }
  const MessageSource& source() const { return source_; }
  // Lets the source continue.
  void Pull();

  // Parses `message` into `parsed`, here or, if it is large, on the pool; then calls `done` here
  // with INVALID_ARGUMENT (REQUEST_MALFORMED), RESOURCE_EXHAUSTED or OK, and the charge for the
  // parsed message. `parsed` lives as long as the call.
  using Parsed = std::function<void(const absl::Status&, RequestMemory::Charge)>;
  void Parse(ChargedMessage message, google::protobuf::MessageLite& parsed, Parsed done);

  // Whether a message that is charged so is large: work on it would hold up the loop.
  static bool IsLarge(const RequestMemory::Charge& charge);
  // Destroys the contents of `message` on the pool, where it was parsed: returning 32 MiB to the
  // system takes 2 to 4 ms. Its charge is not held meanwhile, so that who sends one large request
  // after the other finds room for each. If the pool is full, destroys it here.
  template <typename Message>
  void DestroyElsewhere(Message message) {
    DropElsewhere(std::make_shared<Message>(std::move(message)));
  }

  // Sends a message with its prefix; headers first, if they are not sent.
  void Send(std::shared_ptr<const OutputBytes> framed);
  // Ends the call: OnEnd, metrics, log line, trailers. Unsent messages are sent first.
  void Conclude(const absl::Status& status);
  // Ends the call of a client that does not read its answers: unsent messages are dropped.
  void Break(const absl::Status& status);
  // A request must be complete by `at`; InfiniteFuture: it is. The call's deadline applies too.
  void AwaitRequestUntil(absl::Time at);

 private:
  struct DeadlineTimer final : Timer {
    explicit DeadlineTimer(Call& call) : call(call) {}
    void OnTime() override;
    Call& call;
  };
  // Checks whether the client reads its answer, also after the call's end.
  struct UnreadTimer final : Timer {
    explicit UnreadTimer(Call& call) : call(call) {}
    void OnTime() override { call.OnUnreadTime(); }
    Call& call;
  };
  // Looks no longer for the revision that the call must wait for.
  struct RevisionTimer final : Timer {
    explicit RevisionTimer(Call& call) : call(call) {}
    void OnTime() override { call.OnRevisionTime(); }
    Call& call;
  };
  // Looks whether the rest of a message comes.
  struct HalfMessageTimer final : Timer {
    explicit HalfMessageTimer(Call& call) : call(call) {}
    void OnTime() override { call.OnHalfMessageTime(); }
    Call& call;
  };
  void AwaitRevision();
  // "" if the answer tells none.
  std::string ToldRevision() const;
  void OnRevision(const absl::Status& found);
  void OnRevisionTime();
  void EndForShutdown();
  void DropElsewhere(std::shared_ptr<void> message);
  void WatchHalfMessage();
  void OnHalfMessageTime();
  void OnUnreadTime();
  void Cancel(const absl::Status& status);
  void End(const absl::Status& status);
  void Record(const absl::Status& status);
  void AwaitMemory();
  void Progress();

  // Work of the call elsewhere may outlast the loop.
  const std::shared_ptr<EventLoop> loop_;
  // Null after its end.
  Stream* stream_;
  const Method& method_;
  const CallEnvironment& environment_;
  const MessageCost& request_cost_;
  CallerShares::Share share_;
  const absl::Time started_;
  const absl::Time deadline_;
  absl::Time last_data_ = started_;
  absl::Time request_until_ = absl::InfiniteFuture();
  const std::string peer_;
  MessageSource source_;
  DeadlineTimer deadline_timer_;
  HalfMessageTimer half_message_timer_;
  // Bytes of the body when the timer was set, and the messages that were complete.
  int64_t half_message_bytes_ = 0;
  int64_t half_message_number_ = 0;
  UnreadTimer unread_timer_;
  // Revision that this server must know before OnBegin; "" if none is required, or it is known.
  std::string min_revision_;
  // Null if the caller names no revision.
  Revisions* const revisions_;
  RevisionTimer revision_timer_;
  const RequestId request_id_;
  bool headers_sent_ = false;
  bool over_ = false;
  bool listening_for_memory_ = false;
  std::atomic<bool> cancelled_{false};
};

// `message` as gRPC frames it, charged to the budget. RESOURCE_EXHAUSTED if it is larger than the
// limit, or, if over 64 KiB, when there is no capacity for it.
absl::StatusOr<std::shared_ptr<const OutputBytes>> FrameMessage(
    const google::protobuf::MessageLite& message, const CallEnvironment& environment);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_CALL_H_
