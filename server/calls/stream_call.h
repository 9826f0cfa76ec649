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
//   6. OnEnd is called once, before the client learns of the end, whatever the cause: the handler,
//      the client, the client's deadline or one of these rules. Nothing is called after OnEnd.
#ifndef PHIMAP_SERVER_CALLS_STREAM_CALL_H_
#define PHIMAP_SERVER_CALLS_STREAM_CALL_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/calls/call.h"

namespace phimap {

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

  absl::Time waits_since() const final;
  void OnBegin() final;
  void OnRequestProgress() final;
  void OnAnswersSent() final;
  void OnOver() final { idle_timer_.Cancel(); }
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
  static const MessageCost& Cost() {
    static const MessageCost* const cost = new MessageCost(*Request::descriptor());
    return *cost;
  }

  Request request_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_STREAM_CALL_H_
