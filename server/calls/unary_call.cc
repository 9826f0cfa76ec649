#include "server/calls/unary_call.h"

#include <utility>

#include "server/calls/call_errors.h"
#include "server/sync/steady_time.h"

namespace phimap {
namespace {

// Maximum time for a request to arrive. While it arrives, it occupies memory that others need.
constexpr absl::Duration kRequestTime = absl::Minutes(1);

}  // namespace

UnaryCall::UnaryCall(const CallStart& start, const MessageCost& request_cost,
                     google::protobuf::MessageLite& request,
                     google::protobuf::MessageLite& response)
    : Call(start, request_cost, MessageSource::WithoutCapacity::kRefuse),
      request_(request),
      response_(response) {}

void UnaryCall::OnBegin() { AwaitRequestUntil(SteadyNow() + kRequestTime); }

absl::Time UnaryCall::waits_since() const { return begun_ ? absl::InfiniteFuture() : last_data(); }

void UnaryCall::OnRequestProgress() {
  if (begun_) return;
  if (!source().has_message()) {
    if (!source().error().ok()) return Conclude(source().error());
    return Conclude(WrongMessageCount(request_.GetTypeName(), "none"));
  }
  if (source().has_more()) return Conclude(WrongMessageCount(request_.GetTypeName(), "more"));
  // A client ends the request with its message, so this wait is for clients that send another.
  if (!source().is_last()) return;
  begun_ = true;
  AwaitRequestUntil(absl::InfiniteFuture());
  std::optional<ChargedMessage> message = source().Next();
  Parse(*std::move(message), request_, [this](const absl::Status& status, RequestMemory::Charge c) {
    if (!status.ok()) return Conclude(status);
    charge_ = std::move(c);
    Start();
  });
}

void UnaryCall::Finish(const absl::Status& status) {
  if (OnLoop()) return FinishHere(status);
  Post([this, status] { FinishHere(status); });
}

void UnaryCall::FinishWith(std::shared_ptr<const OutputBytes> framed) {
  if (OnLoop()) return FinishHereWith(std::move(framed));
  Post([this, framed = std::move(framed)]() mutable { FinishHereWith(std::move(framed)); });
}

void UnaryCall::FinishHere(const absl::Status& status) {
  if (over()) return;
  if (!status.ok()) return Conclude(status);
  absl::StatusOr<std::shared_ptr<const OutputBytes>> framed = Frame(response_);
  if (!framed.ok()) return Conclude(framed.status());
  FinishHereWith(*std::move(framed));
}

void UnaryCall::FinishHereWith(std::shared_ptr<const OutputBytes> framed) {
  if (over()) return;
  // A client that has its answer may send the next large request, for which there should be memory.
  if (has_large_request()) {
    return DropRequest(TakeCharge(),
                       [this, framed = std::move(framed)] { FinishHereWith(framed); });
  }
  Send(std::move(framed));
  Conclude(absl::OkStatus());
}

}  // namespace phimap
