// The base class of all calls.
//
// A call belongs to the thread of its stream's event loop. Its functions run on that thread, one at
// a time, except those marked "from any thread". So a call needs no lock. Work that takes long or
// blocks runs on other threads, which report back by Post.
//
// Guarantees: a call ends exactly once, with one status, and is counted and logged. If the client
// disconnects or the deadline passes, the call ends at once, and tasks that return later do not
// touch it. No call is created for a caller without permission.
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
#include "server/observe/log.h"
#include "server/transport/stream.h"
#include "server/transport/timer_wheel.h"

namespace phimap {

class Call : public StreamHandler, public std::enable_shared_from_this<Call> {
 public:
  ~Call() override;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Starts the call. The dispatcher calls this after it has given the stream to the call.
  void Begin();

  // These two functions end calls of this thread's loop with UNAVAILABLE (SERVER_SHUTTING_DOWN).
  // The first ends the calls whose client has been silent for longer than `silent`; the second ends
  // all calls. If a call has already ended but its client does not read the answer, its stream is
  // reset.
  static void EndSilentCalls(absl::Duration silent);
  static void EndAllCalls();

  // The next seven functions, up to Frame(), may be called from any thread.

  // Returns the time at which the request's headers had arrived.
  absl::Time started() const { return started_; }
  // InfiniteFuture if the client set no deadline.
  absl::Time deadline() const { return deadline_; }
  // Becomes true when the call is cancelled: by its client, at its deadline or by the server.
  const std::atomic<bool>* cancelled() const { return &cancelled_; }
  const CallEnvironment& environment() const { return environment_; }
  // Address of the client, such as "ipv4:127.0.0.1:41234".
  const std::string& peer() const { return peer_; }
  // On whose account the call holds memory and places; null if there is no limit.
  const CallerPointer& caller() const { return caller_; }
  // Returns `message` in gRPC's framing, charged to the budget. RESOURCE_EXHAUSTED if the message
  // is larger than the limit, or if it is over 64 KiB and there is no capacity for it.
  absl::StatusOr<std::shared_ptr<const OutputBytes>> Frame(
      const google::protobuf::MessageLite& message) const;

  void OnData(absl::string_view bytes) final;
  void OnRequestEnd() final;
  void OnSent() final;
  void OnClosed(ResetCode code) final;

 protected:
  Call(const CallStart& start, const MessageCost& request_cost,
       MessageSource::WithoutCapacity without_capacity);

  // Time at which bytes of the request last arrived; before the first bytes, started().
  absl::Time last_data() const { return last_data_; }
  // Time since which the call has been waiting for its client; InfiniteFuture while it is not
  // waiting.
  virtual absl::Time waits_since() const { return absl::InfiniteFuture(); }
  // Called when the request begins. Nothing of the request has been read yet.
  virtual void OnBegin() = 0;
  // Called when a message is complete or when no more messages follow. source() tells which is the
  // case.
  virtual void OnRequestProgress() = 0;
  // Called when everything that was passed to Send has been sent.
  virtual void OnAnswersSent() {}
  // Called when the call is over, before OnEnd. Timers are cancelled here, on the loop's thread,
  // because the call may be destroyed on another thread.
  virtual void OnOver() {}
  // Called last, when the call has ended with `status` for any reason, and before the client learns
  // of the end.
  virtual void OnEnd(const absl::Status& status) { static_cast<void>(status); }

  EventLoop& loop() { return *loop_; }
  bool OnLoop() const { return loop_->OnThisThread(); }
  // May be called from any thread. Runs `task` on the loop's thread, unless the call has ended.
  // Keeps the call alive until then.
  void Post(std::function<void()> task);

  bool over() const { return over_; }
  // Source of the request's messages. Bytes stay in the stream's flow-control window until the
  // source takes them.
  MessageSource& source() { return source_; }
  const MessageSource& source() const { return source_; }
  // Lets source() read on. To be called after MessageSource::Next and when memory may have become
  // available.
  void Pull();

  // Parses `message` into `parsed`: on this thread or, if the message is large, on the parsing
  // pool. Then calls `done` on this thread with INVALID_ARGUMENT (REQUEST_MALFORMED),
  // RESOURCE_EXHAUSTED or OK, and with the charge for the parsed message. `parsed` must live as
  // long as the call.
  using Parsed = std::function<void(const absl::Status&, RequestMemory::Charge)>;
  void Parse(ChargedMessage message, google::protobuf::MessageLite& parsed, Parsed done);

  // Whether a message with this charge is so large that work on it would hold up the loop.
  static bool IsLarge(const RequestMemory::Charge& charge);
  // Destroys the contents of `message` on the pool that parsed it, because returning 32 MiB to the
  // system takes 2 to 4 ms, and then returns their charge. If the pool is full, does so on the
  // calling thread. Then runs `done`, if there is one, as Post does.
  template <typename Message>
  void DestroyElsewhere(Message message, RequestMemory::Charge charge,
                        std::function<void()> done = nullptr) {
    // The second member is destroyed first.
    DropElsewhere(std::make_shared<std::pair<RequestMemory::Charge, Message>>(std::move(charge),
                                                                              std::move(message)),
                  std::move(done));
  }

  // Sends a message with its prefix, preceded by the headers if they have not been sent yet.
  void Send(std::shared_ptr<const OutputBytes> framed);
  // Ends the call: calls OnEnd, counts and logs the end, and sends the trailers. Unsent messages
  // are sent first.
  void Conclude(const absl::Status& status);
  // Ends the call and drops unsent messages. For clients that do not read their answers.
  void Break(const absl::Status& status);
  // Ends the call when there is no memory to go on with it. Needs none itself, on the loop's
  // thread. May be called from any thread.
  void EndWithoutMemory();
  // Ends the call at `at` unless its request is complete by then. Call it with InfiniteFuture when
  // the request is complete, to remove this limit. The call's deadline applies in any case.
  void AwaitRequestUntil(absl::Time at);

 private:
  struct DeadlineTimer final : Timer {
    explicit DeadlineTimer(Call& call) : call(call) {}
    void OnTime() override;
    Call& call;
  };
  // Checks whether the client reads its answer, including after the end of the call.
  struct UnreadTimer final : Timer {
    explicit UnreadTimer(Call& call) : call(call) {}
    void OnTime() override { call.OnUnreadTime(); }
    Call& call;
  };
  // Ends the wait for the revision that the client requires.
  struct RevisionTimer final : Timer {
    explicit RevisionTimer(Call& call) : call(call) {}
    void OnTime() override { call.OnRevisionTime(); }
    Call& call;
  };
  // Checks that the rest of an incomplete message arrives fast enough.
  struct HalfMessageTimer final : Timer {
    explicit HalfMessageTimer(Call& call) : call(call) {}
    void OnTime() override { call.OnHalfMessageTime(); }
    Call& call;
  };
  // The list of this thread's calls whose streams have begun and not ended.
  void JoinLive();
  void LeaveLive();
  template <typename Act>
  static void ForEachLive(const Act& act);
  void AwaitRevision();
  // Returns the revision that the answer reports, or "" if it reports none.
  std::string ToldRevision() const;
  void OnRevision(const absl::Status& found);
  void OnRevisionTime();
  void EndForShutdown();
  void DropElsewhere(std::shared_ptr<void> message, std::function<void()> done);
  void WatchHalfMessage();
  void OnHalfMessageTime();
  // Pace below which a message that is arriving, or an answer that is being read, must give way to
  // others that wait for memory. It rises with `bytes`, its size, and if its caller holds more than
  // its share.
  double SlowestBytesPerSecond(double bytes) const;
  // Time after which the pace is looked at again.
  absl::Duration PacePeriod() const;
  void WatchUnread();
  void OnUnreadTime();
  void Cancel(const absl::Status& status);
  void End(const absl::Status& status);
  void Record(const absl::Status& ended);
  // Returns what continues this call with the memory that the source waits for, if the call still
  // exists.
  RequestMemory::Granted GrantedToThis();
  void Progress();

  // Shared, because work of the call on other threads may outlive the loop.
  const std::shared_ptr<EventLoop> loop_;
  // Null after the stream has ended.
  Stream* stream_;
  const Method& method_;
  const CallEnvironment& environment_;
  const MessageCost& request_cost_;
  CallerShares::Share share_;
  const CallerPointer caller_;
  const absl::Time started_;
  const absl::Time deadline_;
  absl::Time last_data_ = started_;
  absl::Time request_until_ = absl::InfiniteFuture();
  const std::string peer_;
  MessageSource source_;
  DeadlineTimer deadline_timer_;
  HalfMessageTimer half_message_timer_;
  // Bytes of the body that had been taken, and number of complete messages, when
  // half_message_timer_ was set.
  int64_t half_message_bytes_ = 0;
  int64_t half_message_number_ = 0;
  absl::Time half_message_since_;
  UnreadTimer unread_timer_;
  // Bytes passed to the stream. When unread_timer_ was set: how many of them had been sent on, how
  // many had not, and the time.
  int64_t answer_bytes_ = 0;
  int64_t read_then_ = 0;
  int64_t unread_then_ = 0;
  absl::Time unread_watched_since_;
  // Revision that this server must know before OnBegin; "" if none is required, or it is known.
  std::string min_revision_;
  // Null if the caller has sent no revision.
  Revisions* const revisions_;
  RevisionTimer revision_timer_;
  const RequestId request_id_;
  Call* live_before_ = nullptr;
  Call* live_after_ = nullptr;
  bool headers_sent_ = false;
  // Set by Begin, after which the call has to end in every case.
  bool begun_ = false;
  bool over_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_CALL_H_
