// A call with one request message and one response message.
//
// Example:
//   class GetBuildCall final : public TypedUnaryCall<v1::GetBuildRequest, v1::BuildJob> {
//     void Start() override { …; Finish(status); }
//   };
#ifndef PHIMAP_SERVER_CALLS_UNARY_CALL_H_
#define PHIMAP_SERVER_CALLS_UNARY_CALL_H_

#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "core/status/error.h"
#include "server/calls/call.h"
#include "server/schedule/task_pool.h"

namespace phimap {

class UnaryCall : public Call {
 protected:
  // `request` and `response` are members of the derived class.
  UnaryCall(const CallStart& start, const MessageCost& request_cost,
            google::protobuf::MessageLite& request, google::protobuf::MessageLite& response);

  // Called when the request is complete. Must not block. Finish or FinishWith must be called within
  // this function or later, from any thread.
  virtual void Start() = 0;

  // Ends the call, from any thread, with the response if `status` is OK. Must be called once. The
  // result of a cancelled call is dropped.
  void Finish(const absl::Status& status);
  // Finishes with an encoded answer instead of the response.
  void FinishWith(std::shared_ptr<const OutputBytes> framed);

  bool has_large_request() const { return IsLarge(charge_); }
  RequestMemory::Charge TakeCharge() { return std::move(charge_); }
  // Destroys the request on a thread where that delays no other call, returns the charge, and then
  // calls `done`, which keeps the call alive, on the loop's thread.
  virtual void DropRequest(RequestMemory::Charge charge, std::function<void()> done) = 0;

 private:
  absl::Time waits_since() const final;
  void OnBegin() final;
  void OnRequestProgress() final;
  void FinishHere(const absl::Status& status);
  void FinishHereWith(std::shared_ptr<const OutputBytes> framed);

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
  // Fills in the response.
  using Body = std::function<absl::Status(const Request&, Response*)>;

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
    try {
      return body_(this->request(), &this->response());
    } catch (const std::bad_alloc&) {
      return MakeError(absl::StatusCode::kResourceExhausted, "MACHINE_MEMORY_FULL", "",
                       "not enough memory for this call", {}, /*retry_delay_ms=*/1000);
    }
  }

  TaskPool& pool_;
  const Body body_;
};

// For Dispatcher::Openers: returns an opener of calls that run `body` on `pool`, which must outlive
// the server.
template <typename Request, typename Response>
Method::Open OpensBlocking(TaskPool& pool, typename BlockingCall<Request, Response>::Body body) {
  return [&pool, body = std::move(body)](const CallStart& start) {
    return std::make_shared<BlockingCall<Request, Response>>(start, pool, body);
  };
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_UNARY_CALL_H_
