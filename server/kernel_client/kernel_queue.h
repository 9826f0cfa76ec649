// The examples of one version that wait for their kernel values, gathered into calls of the kernel
// service.
//
// Guarantees: every request's `done` is called exactly once: within Submit, or on the thread of the
//             AnswerQueue.
//             A request is sent at once while fewer than kCalls calls are in progress. Later
//             requests wait, without a timer, and are sent together: a block that many callers ask
//             for costs one round trip. A call has at most kMaxValues values, or a single request.
//             If the service rejects a call, the call's requests are sent again separately, so that
//             no caller gets an error about another caller's example.
//             Requests that were cancelled or whose deadline has passed are dropped when they reach
//             the front of the queue.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_QUEUE_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/plan/plan.h"
#include "core/thread/mutex.h"
#include "core/thread/steady_time.h"
#include "server/kernel_client/kernel_service.h"
#include "server/trace/span.h"

namespace phimap {

// The values of one request: a range of rows of an answer.
struct KernelRows {
  std::shared_ptr<const KernelBlockAnswer> answer;
  int64_t first = 0;
  int64_t count = 0;

  // K(x, ·) of each landmark. The values have not been checked to be finite.
  RowsView values() const { return answer->values().Slice(first, count); }
  // K(x, x) in float64, possibly unaligned. Null if not requested.
  const char* diagonal() const {
    if (answer->diagonal() == nullptr) return nullptr;
    return answer->diagonal() + first * static_cast<int64_t>(sizeof(double));
  }
};

class KernelQueue final : public std::enable_shared_from_this<KernelQueue> {
 public:
  static constexpr int kCalls = 2;
  static constexpr int64_t kMaxValues = int64_t{1} << 20;
  static constexpr int64_t kMaxWaitingBytes = int64_t{64} << 20;

  struct Request {
    int64_t count = 0;
    int64_t bytes = 0;
    // Appends the request's examples to a message. Called once, or twice if a call has failed. The
    // data that it reads must live until `done`.
    std::function<void(v1::Examples&)> append;
    // Deadline on the clock of SteadyNow.
    absl::Time deadline = absl::InfiniteFuture();
    // `deadline` on the steady clock. Set by Submit, because the wall clock may step while the
    // request waits.
    SteadyTime steady_deadline = SteadyTime::max();
    // Must outlive `done`.
    const std::atomic<bool>* cancelled = nullptr;
    // The span of the call that wants the values.
    SpanContext span = {};
    std::function<void(absl::StatusOr<KernelRows>)> done;
  };

  // Requests from `service` the kernel values of examples and the landmarks in a plan's `block`. If
  // the examples are rows, they have `columns` numbers. `service` must outlive the queue.
  KernelQueue(KernelService& service, const RemoteFeatures& block, int64_t columns,
              bool want_diagonal);

  const std::string& kernel() const { return kernel_; }
  const KernelService& service() const { return service_; }
  // Kind of the examples that requests append.
  ExampleKind kind() const { return kind_; }
  // Checks that the service can be asked about these examples. If the landmarks are rows, the
  // examples must be rows of as many columns, dense or sparse. If the landmarks are text, they must
  // be text; if the landmarks are bytes, text or bytes. Otherwise returns INVALID_ARGUMENT
  // (EXAMPLE_KIND_MISMATCH, COLUMNS_MISMATCH) with the field.
  absl::Status CheckTakes(const ExamplesView& examples) const;
  // Memory of the landmarks.
  int64_t memory_bytes() const { return right_->bytes(); }

  // Requests kernel values. Errors: those of KernelService, and RESOURCE_EXHAUSTED:
  // MESSAGE_TOO_LARGE (field "rows") if the values do not fit into a message, or KERNEL_QUEUE_FULL
  // (with a retry delay) if kMaxWaitingBytes are waiting.
  void Submit(Request request);

 private:
  using Batch = std::vector<Request>;

  absl::Status CheckSize(const Request& request) const;
  // Sends waiting requests, up to the limit of concurrent calls.
  void Pump();
  // Returns the next batch, or an empty one if none may be sent now. Moves requests that are no
  // longer wanted to `dropped`.
  Batch Take(Batch& dropped) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(Batch batch);
  void Answered(Batch batch, const KernelService::Answer& answer);

  KernelService& service_;
  const std::string kernel_;
  const ExampleKind kind_;
  const int64_t columns_;
  const std::shared_ptr<const KernelExamples> right_;
  const bool want_diagonal_;

  Mutex mutex_;
  std::deque<Request> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_QUEUE_H_
