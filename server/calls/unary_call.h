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
#include <utility>

#include "absl/status/status.h"
#include "server/calls/call.h"

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_UNARY_CALL_H_
