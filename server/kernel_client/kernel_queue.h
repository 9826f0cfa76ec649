// Examples that wait for their kernel values: those of one version, gathered into calls of its
// service.
//
// Guarantees: every request's `done` is called exactly once: within Submit, or on the thread of the
//             queue of answers.
//             A request is sent at once while fewer than kCalls are under way; later ones wait,
//             without a timer, and go together: a block that many callers ask for costs one round
//             trip, and at most kMaxValues values or one request.
//             If the service finds fault with a call, its requests are sent separately: no
//             caller gets the error of another's example.
//             Requests that were cancelled or whose deadline has passed are dropped when it is
//             their turn.
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
#include "server/kernel_client/kernel_service.h"
#include "server/kernel_client/steady_deadline.h"
#include "server/sync/mutex.h"

namespace phimap {

// The values of one request: some rows of an answer.
struct KernelRows {
  std::shared_ptr<const KernelBlockAnswer> answer;
  int64_t first = 0;
  int64_t count = 0;

  // K(x, ·) of each landmark; finite or not.
  RowsView values() const { return answer->values().Slice(first, count); }
  // K(x, x) in float64, at any alignment; null if it was not asked for.
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
    // Appends the examples to the earlier ones; once or, after a fault, twice. The data it reads
    // must live until `done`.
    std::function<void(v1::Examples&)> append;
    // Time by SteadyNow.
    absl::Time deadline = absl::InfiniteFuture();
    // Deadline as Submit saw it: the wall clock may step while the request waits.
    SteadyTime steady_deadline = SteadyTime::max();
    // Outlives `done`.
    const std::atomic<bool>* cancelled = nullptr;
    std::function<void(absl::StatusOr<KernelRows>)> done;
  };

  // For the landmarks of `block`, a plan's, whose examples have `columns` numbers; `service`
  // outlives the queue.
  KernelQueue(KernelService& service, const RemoteFeatures& block, int64_t columns,
              bool want_diagonal);

  const std::string& kernel() const { return kernel_; }
  const KernelService& service() const { return service_; }
  // Kind of the examples that requests append.
  ExampleKind kind() const { return kind_; }
  // Whether the service can be asked about such examples: rows of the landmarks' columns, dense or
  // sparse; text, or bytes too if the landmarks are. INVALID_ARGUMENT (EXAMPLE_KIND_MISMATCH,
  // COLUMNS_MISMATCH) with the field.
  absl::Status CheckTakes(const ExamplesView& examples) const;
  // Memory of the landmarks.
  int64_t memory_bytes() const { return right_->bytes(); }

  // Errors: those of KernelService; RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE, field "rows") when the
  // values do not fit into a message, (KERNEL_QUEUE_FULL, with a retry delay) when kMaxWaitingBytes
  // wait.
  void Submit(Request request);

 private:
  using Batch = std::vector<Request>;

  absl::Status CheckSize(const Request& request) const;
  // Sends waiting requests, as far as the limit of calls permits.
  void Pump();
  // The next batch, empty if none may go; `dropped` receives requests that are no longer wanted.
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
