// What a call is, and all that the author of one needs.
//
// A call with one request and one answer derives from TypedUnaryCall; if its work may block, it is
// a function that OpensBlocking runs on a pool. A call with a stream derives from TypedStreamCall:
//
//   class GetBuildCall final : public TypedUnaryCall<v1::GetBuildRequest, v1::BuildJob> {
//     void Start() override { …; Finish(status); }
//   };
//   dispatcher.Add(*descriptor, {{"GetBuild", Opens<GetBuildCall>(builds)}});  // dispatcher.h
//
// A call belongs to the thread of its stream's event loop. Its functions run on that thread, one at
// a time, except those marked "from any thread". So a call needs no lock. Work that takes long or
// blocks runs on other threads, which report back by Post.
//
// Guarantees: a call ends exactly once, with one status, and is counted and logged. If the client
// disconnects or the deadline passes, the call ends at once, and tasks that return later do not
// touch it. No call is created for a caller without permission.
//
// Four words for the end: a call is *finished* with a status, which its client gets after all
// answers; *cancelled* by its client, its deadline or the server; *reset* if its client does not
// read and unsent answers are dropped; and its stream is *closed* when nothing more can be sent.
#ifndef PHIMAP_SERVER_RPC_CALL_H_
#define PHIMAP_SERVER_RPC_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/status/error.h"
#include "google/protobuf/message_lite.h"
#include "server/admission/access_control.h"
#include "server/admission/caller_shares.h"
#include "server/admission/change_origin.h"
#include "server/admission/principal.h"
#include "server/admission/request_memory.h"
#include "server/admission/role.h"
#include "server/observe/caller_series.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/request_id.h"
#include "server/rpc/message_cost.h"
#include "server/rpc/message_source.h"
#include "server/rpc/request_reference.h"
#include "server/rpc/revisions.h"
#include "server/rpc/transport/stream.h"
#include "server/rpc/transport/timer_wheel.h"
#include "server/schedule/task_pool.h"
#include "server/trace/span.h"

namespace phimap {

class Call;
class RefusedChanges;
class Tracer;
struct CallStart;

// An RPC method of the server. Created once, when the server is assembled.
struct Method {
  // Creates the call. Not called for a call that was not admitted.
  using Open = std::function<std::shared_ptr<Call>(const CallStart&)>;

  MethodMetrics metrics;
  // Lowest role that may call the method.
  Role role;
  Open open;
  // Maximum size of a request; small for methods that are open to all.
  int64_t max_request_bytes = std::numeric_limits<int64_t>::max();
  // Source of the revision that answers of the method report; null if they report none.
  const Revisions* reported_revisions = nullptr;
};

// Objects and limits that all calls use. They must outlive the calls.
struct CallEnvironment {
  const AccessControl& access;
  // Memory budget of requests and answers.
  RequestMemory& memory;
  // Counts and limits the concurrent calls of each caller.
  CallerShares& callers;
  // Threads that parse large messages.
  TaskPool& parsing;
  // Maximum size of a request or response message.
  int64_t max_message_bytes;
  const Logger& logger;
  // Null: the changes that callers are refused are not written down, and callers are not counted.
  RefusedChanges* refusals = nullptr;
  CallerSeries* caller_series = nullptr;
  // A call is cancelled if a message has been arriving more slowly than `slowest_bytes_per_second`,
  // or so slowly that it would take six times this long, while other requests wait for memory. If
  // the caller holds more than half of the memory, the message must arrive in the time itself, and
  // is looked at five times as often. The same holds for a large answer that is read slowly: what
  // is unread counts as the message.
  absl::Duration half_message_time = absl::Seconds(5);
  int64_t slowest_bytes_per_second = 64 << 10;
  // Records traces of calls; null if there are none.
  const Tracer* tracer = nullptr;
};

// Makes the request messages of a call from a body that is no protobuf message, such as JSON.
// Called for one message after the other, on any thread.
class RequestParser {
 public:
  virtual ~RequestParser() = default;
  // Bytes that the parsed message and the work of parsing take at most, beside the body.
  virtual int64_t Cost(absl::string_view body) const = 0;
  // INVALID_ARGUMENT if the body is not what it should be. May throw std::bad_alloc.
  virtual absl::Status Parse(absl::string_view body, google::protobuf::MessageLite& message) = 0;
};

// The data from which a call is created.
struct CallStart {
  Stream& stream;
  const Method& method;
  const CallEnvironment& environment;
  absl::Time deadline;
  // Moved into the call, although the CallStart is const.
  mutable CallerShares::Share share = {};
  // Moved into the call, as `share` is.
  mutable PrincipalPointer principal = nullptr;
  // Revision that must be known before the call begins; "" if none is required, or it is known.
  absl::string_view min_revision = {};
  // Null if the caller has sent no revision.
  Revisions* revisions = nullptr;
  // Null if the request's messages are protobuf's.
  std::shared_ptr<RequestParser> parser = nullptr;
  // Moved into the call, as `share` is.
  mutable CallerIds ids = {};
};

// INVALID_ARGUMENT: the bytes do not parse as a message of `type`.
absl::Status MalformedRequest(absl::string_view type);

// UNIMPLEMENTED (MESSAGE_COUNT_WRONG), as gRPC wants it: the RPC takes one message of `type`, and
// the request has `actual`, such as "none" or "more".
absl::Status WrongMessageCount(absl::string_view type, absl::string_view actual);

// Returns the error for a message that the stream does not allow at this point.
absl::Status Unexpected(const char* field, const char* expected);

// Returns the error for a client that ended the stream before it was complete.
absl::Status ClientGone();

// UNAVAILABLE (SERVER_SHUTTING_DOWN, with a retry delay): the call has had no effect, or none that
// remains.
inline absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, reason::kServerShuttingDown, "",
                   "the server is shutting down", {}, /*retry_delay_ms=*/1000);
}

// How a call ended, also one that was refused before it began.
struct CallEnd {
  const Method& method;
  const absl::Status& status;
  absl::Duration time;
  absl::string_view peer;
  // Null if it is not known who called.
  const Principal* principal;
  const RequestId& request_id;
  // The mapping that the caller has no right to, if that is why the call was refused; else "".
  absl::string_view refused_mapping = {};
  // What the request names; null if that is not known.
  const RequestNames* names = nullptr;
};

// Counts and logs the end of a call. If it was a change that a known caller has no right to, it is
// written down in the audit.
void RecordEnd(const CallEnvironment& environment, const CallEnd& end);

// The base class of all calls.
class Call : public StreamHandler, public std::enable_shared_from_this<Call> {
 public:
  ~Call() override;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Starts the call. The dispatcher calls this after it has given the stream to the call.
  void Begin();

  // These two functions cancel calls of this thread's loop with UNAVAILABLE (SERVER_SHUTTING_DOWN).
  // The first cancels those whose client has been silent for longer than `silent`; the second all.
  // If a call has already ended but its client does not read the answer, its stream is reset.
  static void CancelSilentCalls(absl::Duration silent);
  static void CancelAllCalls();

  // The next functions, up to Frame(), may be called from any thread.

  // The span of the call, for the steps of its work. It may not be recorded.
  const SpanContext& span() const { return span_context_; }
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
  // Who calls: null if that is not known, and the caller may do whatever its role allows.
  const PrincipalPointer& principal() const { return principal_; }

  // The rights of the caller on mappings (call_rights.cc). A mapping that it may not know of is
  // absent for it, in every answer.
  //
  // Returns whether the caller has rights on some mappings only.
  bool limited_to_names() const { return principal_ != nullptr && !principal_->names.empty(); }
  // Returns whether the caller may know that `mapping` exists.
  bool Sees(absl::string_view mapping) const;
  // Returns whether the caller may call this method on `mapping`; "" stands for the whole server.
  bool Allows(absl::string_view mapping) const;
  // OK if the caller may call this method on `mapping`. Otherwise NOT_FOUND (MAPPING_NOT_FOUND), as
  // if it did not exist, or PERMISSION_DENIED (ROLE_TOO_LOW). Not from two threads at once.
  absl::Status CheckMapping(absl::string_view mapping);
  // OK if the caller may add a version to `mapping`, which need not exist. Otherwise
  // PERMISSION_DENIED: NAME_NOT_ALLOWED, or that of CheckMapping.
  absl::Status CheckNewVersion(absl::string_view mapping);
  // OK if the caller may stop a build of `mapping` that `owner` ordered: its own, or any as admin.
  // PERMISSION_DENIED (BUILD_OF_ANOTHER).
  absl::Status CheckBuildOf(absl::string_view owner, absl::string_view mapping);
  // OK if the caller may take artifacts away. PERMISSION_DENIED (EXPORT_NOT_ALLOWED).
  absl::Status CheckExport() const;
  // Takes from what the caller may send by rate. RESOURCE_EXHAUSTED (CALLER_RATE_REACHED).
  absl::Status Spend(Rated kind, int64_t count) const;
  // What the audit says of a change that this call makes.
  ChangeOrigin Origin(absl::string_view operation_id = {}) const;

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
  void Finish(const absl::Status& status) { End(status, /*reset=*/false); }
  // Ends the call and drops unsent messages. For clients that do not read their answers.
  void Reset(const absl::Status& status);
  // Notes what a message of the request names; without a reference, it changes nothing.
  void NoteNames(RequestNames names) {
    if (!names.reference.empty()) names_ = std::move(names);
  }
  // Ends the call when there is no memory to go on with it. Needs none itself, on the loop's
  // thread. May be called from any thread.
  void CancelWithoutMemory();
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
  std::string RevisionToReport() const;
  void OnRevision(const absl::Status& found);
  void OnRevisionTime();
  void CancelForShutdown();
  void NoteRefused(absl::string_view mapping);
  void DropElsewhere(std::shared_ptr<void> message, std::function<void()> done);
  // Returns the cost of parsing `bytes`, or nullopt if the message is so large that it is parsed
  // elsewhere.
  std::optional<absl::StatusOr<int64_t>> CostHere(absl::string_view bytes) const;
  // Parses `message` into `parsed`. Takes more memory if the message's charge does not cover its
  // bytes and the parsed form, whose size is `cost` (MessageCost); then frees the bytes, and leaves
  // the charge for the parsed form. Errors: that of `cost`; INVALID_ARGUMENT (MalformedRequest);
  // RESOURCE_EXHAUSTED (REQUEST_MEMORY_FULL, MESSAGE_TOO_LARGE, MACHINE_MEMORY_FULL).
  absl::Status ParseCharged(const absl::StatusOr<int64_t>& cost, ChargedMessage& message,
                            google::protobuf::MessageLite& parsed) const;
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
  // Finishes the call, and tells work on other threads that it has no purpose.
  void Cancel(const absl::Status& status);
  void End(const absl::Status& status, bool reset);
  void EndSpan(const absl::Status& status);
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
  const std::shared_ptr<RequestParser> parser_;
  CallerShares::Share share_;
  const CallerPointer caller_;
  const PrincipalPointer principal_;
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
  // For the log; "" until a message with a name has arrived.
  RequestNames names_;
  // Used only on the loop's thread.
  Span span_;
  // The step in which the answer is sent. It may end after the call has.
  Span send_span_;
  const SpanContext span_context_;
  Call* live_before_ = nullptr;
  Call* live_after_ = nullptr;
  bool headers_sent_ = false;
  // Set by Begin, after which the call has to end in every case.
  bool begun_ = false;
  bool over_ = false;
  std::atomic<bool> cancelled_{false};
  // See CallEnd. Written once, before `refused_` becomes true.
  std::string refused_mapping_;
  std::atomic<bool> refused_{false};
};

// A call with one request message and one response message.
class UnaryCall : public Call {
 protected:
  // `request` and `response` are members of the derived class.
  UnaryCall(const CallStart& start, const MessageCost& request_cost,
            google::protobuf::MessageLite& request, google::protobuf::MessageLite& response);

  // Called when the request is complete. Must not block. Finish must be called within this function
  // or later, from any thread.
  virtual void Start() = 0;

  // Ends the call, from any thread, with the response if `status` is OK. Must be called once. The
  // result of a cancelled call is dropped.
  void Finish(const absl::Status& status);
  // Finishes with an encoded answer instead of the response.
  void Finish(std::shared_ptr<const OutputBytes> framed);

  bool has_large_request() const { return IsLarge(charge_); }
  RequestMemory::Charge TakeCharge() { return std::move(charge_); }
  // Destroys the request on a thread where that delays no other call, returns the charge, and then
  // calls `done`, which keeps the call alive, on the loop's thread.
  virtual void DropRequest(RequestMemory::Charge charge, std::function<void()> done) = 0;
  virtual RequestNames NamesInRequest() const = 0;

 private:
  absl::Time waits_since() const final;
  void OnBegin() final;
  void OnRequestProgress() final;

  google::protobuf::MessageLite& request_;
  google::protobuf::MessageLite& response_;
  bool begun_ = false;
  // Charge for the parsed request, held as long as the request.
  RequestMemory::Charge charge_;
};

template <typename Request, typename Response>
class TypedUnaryCall : public UnaryCall {
 public:
  explicit TypedUnaryCall(const CallStart& start) : UnaryCall(start, Cost(), request_, response_) {}
  ~TypedUnaryCall() override {
    if (has_large_request()) this->DestroyElsewhere(std::move(request_), TakeCharge());
  }

 protected:
  // Valid from Start until the call finishes.
  const Request& request() const { return request_; }
  Response& response() { return response_; }

 private:
  void DropRequest(RequestMemory::Charge charge, std::function<void()> done) final {
    this->DestroyElsewhere(std::move(request_), std::move(charge), std::move(done));
  }
  RequestNames NamesInRequest() const final { return NamesIn(request_); }
  static const MessageCost& Cost() {
    static const MessageCost* const cost = new MessageCost(*Request::descriptor());
    return *cost;
  }

  Request request_;
  Response response_;
};

// A unary call whose answer comes from the store. Its work may block, so it runs on a thread of a
// pool.
template <typename Request, typename Response>
class BlockingCall final : public TypedUnaryCall<Request, Response> {
 public:
  // Fills in the response. The call is the one that the body answers.
  using Body = std::function<absl::Status(Call&, const Request&, Response*)>;

  // Runs `body` on a thread of `pool` and finishes with its status. A call that ends while it waits
  // for a thread is not run.
  BlockingCall(const CallStart& start, TaskPool& pool, Body body)
      : TypedUnaryCall<Request, Response>(start), pool_(pool), body_(std::move(body)) {}

 private:
  void Start() override {
    const absl::Status queued = pool_.Submit(
        [this, self = this->shared_from_this()] { this->Finish(Run()); }, this->caller());
    if (!queued.ok()) this->Finish(queued);
  }

  absl::Status Run() {
    if (this->cancelled()->load()) return absl::CancelledError("the client cancelled the call");
    const Span store = this->span().Child("store");
    try {
      return body_(*this, this->request(), &this->response());
    } catch (const std::bad_alloc&) {
      return MakeError(absl::StatusCode::kResourceExhausted, reason::kMachineMemoryFull, "",
                       "not enough memory for this call", {}, /*retry_delay_ms=*/1000);
    }
  }

  TaskPool& pool_;
  const Body body_;
};

// For Dispatcher::Openers: returns an opener that creates calls of class `T` from the CallStart and
// `arguments`. The arguments must outlive the server.
template <typename T, typename... Arguments>
Method::Open Opens(Arguments&... arguments) {
  return [&arguments...](const CallStart& start) {
    return std::static_pointer_cast<Call>(std::make_shared<T>(start, arguments...));
  };
}

// For Dispatcher::Openers: returns an opener of calls that run `body` on `pool`, which must outlive
// the server.
template <typename Request, typename Response>
Method::Open OpensBlocking(TaskPool& pool, typename BlockingCall<Request, Response>::Body body) {
  return [&pool, body = std::move(body)](const CallStart& start) {
    return std::make_shared<BlockingCall<Request, Response>>(start, pool, body);
  };
}

// A call with a stream of requests, of answers or of both. This class implements the rules of
// reading, writing, waiting and ending for all such calls.
//
//   1. A message is read only when ReadNext asks for it. Flow control holds the client back, with
//      one message read ahead.
//   2. At most one write is in progress; the next may begin when OnWritten is called.
//   3. Finish ends the call once. OK takes effect after the write in progress, an error at once.
//   4. If the client keeps the call waiting for longer than the idle limit, by sending nothing or
//      by reading nothing, the call ends with DEADLINE_EXCEEDED (STREAM_IDLE).
//   5. If the client sends more slowly than SetPace requires, the call ends with
//      DEADLINE_EXCEEDED (STREAM_TOO_SLOW).
//   6. If the caller's token expires or is taken out of its file, the call ends within a second
//      with UNAUTHENTICATED (TOKEN_EXPIRED, TOKEN_REVOKED).
//   7. OnEnd is called once, before the client learns of the end, whatever the cause: the handler,
//      the client, the client's deadline or one of these rules. Nothing is called after OnEnd.
class StreamCall : public Call {
 protected:
  // `request` must be a member of the derived class.
  StreamCall(const CallStart& start, const MessageCost& request_cost,
             google::protobuf::MessageLite& request);

  // Called when the call begins. Usually calls ReadNext.
  virtual void Start() = 0;
  // Called with the message that ReadNext asked for. The message is valid until the next ReadNext.
  virtual void OnRequest() = 0;
  // Called when the client has sent its last message.
  virtual void OnRequestsEnd() = 0;
  // Called when the input that ReadNext asked for cannot be parsed or accepted as a message. No
  // more messages follow. The handler decides which answers are sent first; ReadNext may not be
  // called again.
  virtual void OnBadRequest(const absl::Status& status) { Finish(status); }
  // Whether the call is working for its client, who may be silent in the meantime.
  virtual bool busy() const { return false; }
  // Called when the next answer may be written.
  virtual void OnWritten() {}

  // Releases the previous message and asks for the next: OnRequest, OnBadRequest or OnRequestsEnd
  // follows, perhaps within this call. REQUIRES: not reading().
  void ReadNext();
  bool reading() const { return reading_; }
  // Whether the request is large and its charge was not taken by TakeCharge.
  bool has_large_request() const { return IsLarge(charge_); }
  // Destroys the request on a thread where that delays no other call, and then returns the charge.
  virtual void DropRequest(RequestMemory::Charge charge) = 0;
  virtual RequestNames NamesInRequest() const = 0;
  // Takes over the charge of the message that OnRequest was called for. If this is not called,
  // ReadNext releases the charge.
  RequestMemory::Charge TakeCharge() {
    source().SetHeld(0);
    return std::move(charge_);
  }
  // Sends an answer. If the answer cannot be sent, the call ends. REQUIRES: not writing().
  void Write(const google::protobuf::MessageLite& response);
  void Write(std::shared_ptr<const OutputBytes> framed);
  bool writing() const { return writing_; }
  void Finish(const absl::Status& status);
  bool finishing() const { return finish_.has_value(); }

  // Sets the time for which the client may keep the call waiting from now on.
  void SetIdleLimit(absl::Duration limit);
  // Requires messages to arrive at this rate or faster from now on; a slower call ends with
  // DEADLINE_EXCEEDED (STREAM_TOO_SLOW). For calls that hold their input until it is complete. Only
  // time in which the call waits for its client counts, and a client may be behind by at most the
  // idle limit.
  void SetPace(int64_t bytes_per_second);

 private:
  struct IdleTimer final : Timer {
    explicit IdleTimer(StreamCall& call) : call(call) {}
    void OnTime() override { call.OnIdle(); }
    StreamCall& call;
  };

  struct PrincipalTimer final : Timer {
    explicit PrincipalTimer(StreamCall& call) : call(call) {}
    void OnTime() override { call.CheckPrincipal(); }
    StreamCall& call;
  };

  absl::Time waits_since() const final;
  void OnBegin() final;
  void OnRequestProgress() final;
  void OnAnswersSent() final;
  void OnOver() final {
    idle_timer_.Cancel();
    principal_timer_.Cancel();
  }
  // Ends the call if its caller's token may be used no longer, and looks again later.
  void CheckPrincipal();
  void Deliver();
  void OnIdle();
  // Whether the call waits for its client.
  bool Waits() const;
  // Restarts the idle time, because the client has done its part or because the call has begun to
  // wait for the client.
  void Touch();
  // Whether a message of `bytes` arrived fast enough, given how long the call waited for it.
  bool KeepsPace(int64_t bytes);

  google::protobuf::MessageLite& request_;
  RequestMemory::Charge charge_;
  bool reading_ = false;
  bool parsing_ = false;
  bool delivering_ = false;
  bool ended_told_ = false;
  bool writing_ = false;
  std::optional<absl::Status> finish_;
  absl::Duration idle_limit_ = absl::InfiniteDuration();
  // Time since which the call waits for its client.
  absl::Time waiting_since_ = absl::InfiniteFuture();
  // Required rate. Zero if no rate is required.
  int64_t slowest_bytes_per_second_ = 0;
  // Time by which the client may currently be behind the required rate.
  absl::Duration patience_;
  // Time for which the call has waited for the next message.
  absl::Duration waited_;
  IdleTimer idle_timer_;
  PrincipalTimer principal_timer_;
};

template <typename Request>
class TypedStreamCall : public StreamCall {
 public:
  explicit TypedStreamCall(const CallStart& start) : StreamCall(start, Cost(), request_) {}
  ~TypedStreamCall() override {
    if (this->has_large_request()) DropRequest(this->TakeCharge());
  }

 protected:
  // The message, from OnRequest until the next ReadNext. The handler may change it or move from it.
  Request& request() { return request_; }

 private:
  void DropRequest(RequestMemory::Charge charge) final {
    this->DestroyElsewhere(std::move(request_), std::move(charge));
  }
  RequestNames NamesInRequest() const final { return NamesIn(request_); }
  static const MessageCost& Cost() {
    static const MessageCost* const cost = new MessageCost(*Request::descriptor());
    return *cost;
  }

  Request request_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_CALL_H_
