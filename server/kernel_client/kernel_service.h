// One kernel service on the operator's list: the user's own kernel, in another process, asked for
// blocks of values.
//
// Guarantees: every call's `done` is called exactly once, with an answer of the shape that was
//             asked for, or an error that names the service; within Compute or Stop, or on the
//             thread of the queue of answers, which it must not hold.
//             At most kMaxCalls are under way; others wait in line, kMaxWaiting at most.
//             Columns are sent with their content once, and again when the service answers
//             NOT_FOUND.
//             A service that cannot be reached is tried again, three times, within the call's
//             deadline; one that does not answer is given up after the time limit.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICE_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/kernel_client/kernel_address.h"
#include "server/kernel_client/kernel_examples.h"
#include "server/kernel_client/steady_deadline.h"
#include "server/observe/kernel_metrics.h"
#include "server/sync/mutex.h"

namespace phimap {

class AnswerQueue;

// A block of kernel values as a service answered it. The block's shape has been checked; whether
// its numbers are finite has not.
class KernelBlockAnswer {
 public:
  virtual ~KernelBlockAnswer() = default;
  // left × right values.
  virtual RowsView values() const = 0;
  // K(left_i, left_i) in float64, as they lie in the message; null if they were not asked for.
  virtual const char* diagonal() const = 0;
};

struct KernelBlockRequest {
  std::string kernel;
  // Rows of the block.
  std::shared_ptr<v1::Examples> left;
  int64_t left_count = 0;
  std::shared_ptr<const KernelExamples> right;
  bool want_diagonal = false;
  // Beside the service's own limit.
  SteadyTime deadline = SteadyTime::max();
};

class KernelService {
 public:
  static constexpr int kMaxCalls = 8;
  static constexpr size_t kMaxWaiting = 1024;

  struct Options {
    // Certificate authorities (PEM) for a TLS service; empty for the system's.
    std::string authorities;
    // Timeout of a call.
    absl::Duration time_limit = absl::Seconds(30);
    int64_t max_message_bytes = int64_t{64} << 20;
  };
  using Answer = absl::StatusOr<std::shared_ptr<const KernelBlockAnswer>>;
  using Done = std::function<void(Answer)>;
  // Cancels a call: its `done` runs soon, unless it has ended.
  using Cancel = std::function<void()>;

  // `answers`, shared by all services, outlives the service.
  KernelService(const KernelAddress& address, const Options& options,
                const KernelServiceMetrics& metrics, AnswerQueue& answers);
  // REQUIRES: Stop.
  ~KernelService();
  KernelService(const KernelService&) = delete;
  KernelService& operator=(const KernelService&) = delete;

  const std::string& name() const { return name_; }
  int64_t max_message_bytes() const { return options_.max_message_bytes; }

  // Errors, all with metadata "service" and "kernel":
  //   UNAVAILABLE (KERNEL_SERVICE_UNAVAILABLE, with a retry delay) cannot be reached, or went away;
  //   UNAVAILABLE (KERNEL_SERVICE_TIMED_OUT) no answer within the time limit;
  //   FAILED_PRECONDITION (KERNEL_SERVICE_FAILED) it answered an error, or more than the limit;
  //   FAILED_PRECONDITION (KERNEL_SERVICE_ANSWER_INVALID) an answer of another shape than was asked
  //   for; RESOURCE_EXHAUSTED (KERNEL_QUEUE_FULL, with a retry delay), UNAVAILABLE
  //   (SERVER_SHUTTING_DOWN); DEADLINE_EXCEEDED, CANCELLED: those of the request.
  Cancel Compute(KernelBlockRequest request, Done done);

  // The error of a value that is not finite, counted from 0 within the answer.
  absl::Status NotFinite(const std::string& kernel, int64_t row, int64_t column,
                         double value) const;

  // Refuses new calls, cancels those under way and waits for their end. Blocking. Idempotent.
  void Stop();

 private:
  class Call;
  class Channel;

  SteadyTime EndOfTimeLimit(const Call& call) const;
  void Start(const std::shared_ptr<Call>& call);
  // Handles the answer of a call, which may have to be retried.
  void Answered(const std::shared_ptr<Call>& call);
  // The error of a call that failed, and was not cancelled.
  absl::Status ErrorOf(const Call& call) const;
  void End(const std::shared_ptr<Call>& call, Answer answer);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool Knows(const std::string& digest) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Learn(const std::string& digest, bool known) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string name_;
  const bool tls_;
  const Options options_;
  const KernelServiceMetrics metrics_;
  const std::unique_ptr<Channel> channel_;
  AnswerQueue& answers_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Digests of the columns that the service has been sent.
  absl::flat_hash_set<std::string> known_ ABSL_GUARDED_BY(mutex_);
  // Calls whose `done` has not returned: waiting ones and those under way.
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Call>> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::shared_ptr<Call>> under_way_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICE_H_
