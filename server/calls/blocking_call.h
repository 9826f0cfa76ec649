// A unary call whose answer comes from the store. Its work may block, so it runs on a thread of a
// pool.
#ifndef PHIMAP_SERVER_CALLS_BLOCKING_CALL_H_
#define PHIMAP_SERVER_CALLS_BLOCKING_CALL_H_

#include <functional>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "core/status/error.h"
#include "server/calls/unary_call.h"
#include "server/schedule/task_pool.h"

namespace phimap {

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

#endif  // PHIMAP_SERVER_CALLS_BLOCKING_CALL_H_
