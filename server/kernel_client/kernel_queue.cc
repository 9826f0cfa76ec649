#include "server/kernel_client/kernel_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/words.h"
#include "core/thread/steady_time.h"
#include "phimap/v1/examples.pb.h"

namespace phimap {
namespace {

constexpr int64_t kQueueRetryMs = 100;
// Bytes reserved in an answer for everything but its values.
constexpr int64_t kEnvelopeBytes = 1024;

bool IsGivenUp(const KernelQueue::Request& request) {
  return request.cancelled != nullptr && request.cancelled->load();
}

// The span of a call for several requests: a child of the first of them that is traced.
Span SpanOf(const std::vector<KernelQueue::Request>& batch, int64_t examples) {
  for (const KernelQueue::Request& request : batch) {
    if (!request.span.recorded()) continue;
    Span span = request.span.Child("phimap.v1.KernelService/ComputeBlock", SpanKind::kClient);
    span.Set("phimap.examples", examples);
    return span;
  }
  return Span();
}

}  // namespace

KernelQueue::KernelQueue(KernelService& service, const RemoteFeatures& block, int64_t columns,
                         bool want_diagonal)
    : service_(service),
      kernel_(block.kernel),
      kind_(KindOf(block.kind)),
      columns_(columns),
      right_(KernelExamples::Of(block, columns)),
      want_diagonal_(want_diagonal) {}

absl::Status KernelQueue::CheckTakes(const ExamplesView& examples) const {
  if (!IsString(kind_)) return CheckShape(examples, columns_);
  if (examples.kind() == kind_ || examples.kind() == ExampleKind::kText) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kExampleKindMismatch,
      absl::StrCat("examples.", examples.kind_name()),
      absl::StrCat("the version maps ", kind_ == ExampleKind::kBytes ? "bytes or text" : "text",
                   ", got ", examples.kind_name()),
      {{"actual", std::string(examples.kind_name())}});
}

absl::Status KernelQueue::CheckSize(const Request& request) const {
  const int64_t row_bytes = (right_->count() + 1) * static_cast<int64_t>(sizeof(double));
  const int64_t fitting =
      std::max<int64_t>(1, (service_.max_message_bytes() - kEnvelopeBytes) / row_bytes);
  if (request.count <= fitting) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, reason::kMessageTooLarge, "rows",
                   absl::StrCat("the kernel values of ", CountOf(request.count, "row"), " take ",
                                request.count * row_bytes, " bytes, over the message limit of ",
                                service_.max_message_bytes(), "; send at most ",
                                CountOf(fitting, "row"), " at once"),
                   {{"actual", absl::StrCat(request.count)}, {"limit", absl::StrCat(fitting)}});
}

void KernelQueue::Submit(Request request) {
  request.steady_deadline = SteadyDeadline(request.deadline, SteadyNow());
  absl::Status refused = CheckSize(request);
  if (refused.ok()) {
    MutexLock lock(&mutex_);
    if (!waiting_.empty() && waiting_bytes_ + request.bytes > kMaxWaitingBytes) {
      refused = MakeError(absl::StatusCode::kResourceExhausted, reason::kKernelQueueFull, "",
                          absl::StrCat(waiting_bytes_,
                                       " bytes of examples wait for the kernel "
                                       "service \"",
                                       service_.name(), "\"; the limit is ", kMaxWaitingBytes),
                          {{"limit", absl::StrCat(kMaxWaitingBytes)},
                           {"service", service_.name()},
                           {"kernel", kernel_}},
                          kQueueRetryMs);
    } else {
      waiting_bytes_ += request.bytes;
      waiting_.push_back(std::move(request));
    }
  }
  // NOLINTNEXTLINE(bugprone-use-after-move): a request that is refused was not moved.
  if (!refused.ok()) return request.done(refused);
  Pump();
}

void KernelQueue::Pump() {
  const auto self = shared_from_this();  // ending a request may destroy its version
  while (true) {
    Batch dropped;
    Batch batch = Take(dropped);
    for (Request& request : dropped) {
      request.done(
          IsGivenUp(request)
              ? absl::CancelledError("the call was cancelled before its values were requested")
              : absl::DeadlineExceededError(
                    "the deadline passed before its values were requested"));
    }
    if (!batch.empty()) {
      Send(std::move(batch));
    } else if (dropped.empty()) {
      return;
    }
  }
}

KernelQueue::Batch KernelQueue::Take(Batch& dropped) {
  const int64_t most = std::max<int64_t>(1, kMaxValues / right_->count());
  const SteadyTime now = std::chrono::steady_clock::now();
  Batch batch;
  int64_t count = 0;
  MutexLock lock(&mutex_);
  if (calls_ >= kCalls) return batch;
  while (!waiting_.empty()) {
    Request& next = waiting_.front();
    const bool dead = IsGivenUp(next) || next.steady_deadline <= now;
    if (!dead && !batch.empty() && count + next.count > most) break;
    if (!dead) count += next.count;
    waiting_bytes_ -= next.bytes;
    (dead ? dropped : batch).push_back(std::move(next));
    waiting_.pop_front();
  }
  if (!batch.empty()) ++calls_;
  return batch;
}

void KernelQueue::Send(Batch batch) {
  KernelBlockRequest call{.kernel = kernel_,
                          .left = std::make_shared<v1::Examples>(),
                          .right = right_,
                          .want_diagonal = want_diagonal_,
                          .deadline = SteadyTime::min()};
  for (const Request& request : batch) {
    request.append(*call.left);
    call.left_count += request.count;
    call.deadline = std::max(call.deadline, request.steady_deadline);
  }
  const auto span = std::make_shared<Span>(SpanOf(batch, call.left_count));
  call.trace_parent = span->context().traceparent();
  const auto shared = std::make_shared<Batch>(std::move(batch));
  service_.Compute(std::move(call),
                   [self = shared_from_this(), shared, span](const KernelService::Answer& answer) {
                     span->End(answer.status());
                     self->Answered(std::move(*shared), answer);
                   });
}

void KernelQueue::Answered(Batch batch, const KernelService::Answer& answer) {
  // The service may reject one example, crash on it, or take too long for it.
  const bool one_may_be_at_fault =
      absl::IsFailedPrecondition(answer.status()) || absl::IsUnavailable(answer.status());
  if (one_may_be_at_fault && batch.size() > 1) {
    {
      MutexLock lock(&mutex_);
      calls_ += static_cast<int>(batch.size()) - 1;
    }
    for (Request& request : batch) {
      Batch one;
      one.push_back(std::move(request));
      Send(std::move(one));
    }
    return;
  }
  {
    MutexLock lock(&mutex_);
    --calls_;
  }
  // Starts the next call first, so that it runs while these requests continue.
  Pump();
  int64_t first = 0;
  for (Request& request : batch) {
    if (answer.ok()) {
      request.done(KernelRows{*answer, first, request.count});
    } else {
      request.done(answer.status());
    }
    first += request.count;
  }
}

}  // namespace phimap
