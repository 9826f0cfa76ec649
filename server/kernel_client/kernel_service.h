// One kernel service on the operator's list. It computes blocks of values of the user's own kernel
// in another process.
//
// Guarantees: every call's `done` is called exactly once, with an answer of the requested shape, or
//             with an error that names the service. It is called within Compute or Stop, or on the
//             thread of the AnswerQueue, which it must not block.
//             At most kMaxCalls calls are in progress, and at most kMaxWaiting wait in a queue.
//             The content of a block's columns is sent once, and again if the service answers
//             NOT_FOUND.
//             A call to an unreachable service is retried up to three times within the call's
//             deadline. A call without an answer ends at the time limit.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICE_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "core/thread/steady_time.h"
#include "grpcpp/completion_queue.h"
#include "server/kernel_client/kernel_address.h"
#include "server/kernel_client/kernel_examples.h"
#include "server/observe/metrics.h"
#include "server/observe/trace_parent.h"

namespace phimap {

// Receives the answers of kernel services: a gRPC completion queue and the one thread that empties
// it.
//
// Guarantees: OnAnswer is called on the queue's own thread, exactly once for each call that was
//             begun with the queue, whatever its result.
// Thread-safety: calls may be begun from any thread.
class AnswerQueue {
 public:
  // A call that waits for its answer. Its address is the call's tag.
  class Waiting {
   public:
    // Called when the call has ended. Must not block, because it would delay all answers of all
    // services. May begin another call.
    virtual void OnAnswer() = 0;

   protected:
    ~Waiting() = default;
  };

  AnswerQueue();
  // REQUIRES: every call has ended.
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  // Returns the completion queue, for calls whose tag is a Waiting*.
  grpc::CompletionQueue* get() { return &answers_; }

 private:
  void Run();

  grpc::CompletionQueue answers_;
  std::thread thread_;
};

class AnswerQueue;

// A block of kernel values from a service. Its shape has been checked, but whether its values are
// finite has not.
class KernelBlockAnswer {
 public:
  virtual ~KernelBlockAnswer() = default;
  // K(x, y) with a row for each left example x and a column for each right example y.
  virtual RowsView values() const = 0;
  // K(left_i, left_i) in float64, possibly unaligned. Null if not requested.
  virtual const char* diagonal() const = 0;
};

struct KernelBlockRequest {
  std::string kernel;
  // Rows of the block.
  std::shared_ptr<v1::Examples> left;
  int64_t left_count = 0;
  std::shared_ptr<const KernelExamples> right;
  bool want_diagonal = false;
  // Applies in addition to the service's time limit.
  SteadyTime deadline = SteadyTime::max();
  // The header traceparent of the call; nullopt if it is not traced.
  std::optional<TraceParent> trace_parent = std::nullopt;
};

class KernelService {
 public:
  static constexpr int kMaxCalls = 8;
  static constexpr size_t kMaxWaiting = 1024;

  struct Options {
    // Authorities (PEM) that may sign the TLS certificate of a service. Empty means the system's
    // authorities.
    std::string authorities;
    // Timeout of a call.
    absl::Duration time_limit = absl::Seconds(30);
    int64_t max_message_bytes = int64_t{64} << 20;
  };
  using Answer = absl::StatusOr<std::shared_ptr<const KernelBlockAnswer>>;
  using Done = std::function<void(Answer)>;
  // Cancels a call, so that its `done` runs soon. No-op if the call has ended.
  using Cancel = std::function<void()>;

  // `answers` is shared by all services and must outlive this one.
  KernelService(const KernelAddress& address, const Options& options,
                const KernelServiceMetrics& metrics, AnswerQueue& answers);
  // Calls Stop.
  ~KernelService();
  KernelService(const KernelService&) = delete;
  KernelService& operator=(const KernelService&) = delete;

  const std::string& name() const { return name_; }
  int64_t max_message_bytes() const { return options_.max_message_bytes; }

  // Computes a block. Errors, with metadata "service" and "kernel" unless stated otherwise:
  //   UNAVAILABLE (KERNEL_SERVICE_UNAVAILABLE, with a retry delay): the service cannot be
  //   reached, or went away;
  //   UNAVAILABLE (KERNEL_SERVICE_TIMED_OUT, with a retry delay): no answer within the time limit;
  //   FAILED_PRECONDITION (KERNEL_SERVICE_FAILED): the service answered an error, or a message
  //   larger than the limit;
  //   FAILED_PRECONDITION (KERNEL_SERVICE_ANSWER_INVALID): the answer has the wrong shape;
  //   RESOURCE_EXHAUSTED (KERNEL_QUEUE_FULL, with a retry delay);
  //   UNAVAILABLE (SERVER_SHUTTING_DOWN), without metadata;
  //   DEADLINE_EXCEEDED and CANCELLED, if the caller's deadline passed or the caller cancelled the
  //   call, without metadata.
  Cancel Compute(KernelBlockRequest request, Done done);

  // Returns the error for a value that is not finite. `row` and `column` count from 0 within the
  // answer.
  absl::Status NotFinite(const std::string& kernel, int64_t row, int64_t column,
                         double value) const;

  // Rejects new calls, cancels all others and waits until they have ended. Blocking. Idempotent.
  void Stop();

 private:
  class Call;
  class Channel;

  SteadyTime EndOfTimeLimit(const Call& call) const;
  void Start(const std::shared_ptr<Call>& call);
  // Handles the end of an attempt: retries it if the service lacks the columns, or ends the call.
  void Answered(const std::shared_ptr<Call>& call);
  // Returns the error of a call that failed without being cancelled.
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
  // Digests of the columns that the service has accepted.
  absl::flat_hash_set<std::string> known_ ABSL_GUARDED_BY(mutex_);
  // Number of calls whose `done` has not returned: those that wait and those in progress.
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Call>> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::shared_ptr<Call>> under_way_ ABSL_GUARDED_BY(mutex_);
};

// The kernel services on the operator's list.
class AnswerQueue;

// Immutable; thread-safe. Owns the one thread on which all answers arrive.
class KernelServices {
 public:
  // Connects to no service before its first call. If two addresses have the same name, the last one
  // is used.
  KernelServices(const std::vector<KernelAddress>& addresses, const KernelService::Options& options,
                 KernelMetrics& metrics);
  // Stops all services.
  ~KernelServices();

  // Returns the service, or null for a name that is not listed. The result lives as long as this
  // object.
  KernelService* Find(absl::string_view name) const;

  // Calls KernelService::Stop on all services.
  void Stop();

 private:
  // Null if there are no services. Declared first, so that it is destroyed last: all calls must
  // have ended by then.
  std::unique_ptr<AnswerQueue> answers_;
  std::map<std::string, std::unique_ptr<KernelService>, std::less<>> services_;
};

// Returns the service of this name, or FAILED_PRECONDITION (KERNEL_SERVICE_NOT_LISTED, with
// `field`) if it is not listed. A null `services` lists none.
absl::StatusOr<KernelService*> FindKernelService(const KernelServices* services,
                                                 absl::string_view name, absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICE_H_
