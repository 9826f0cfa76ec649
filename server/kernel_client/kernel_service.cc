#include "server/kernel_client/kernel_service.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/error.h"
#include "core/thread/start_thread.h"
#include "grpc/support/time.h"
#include "grpcpp/grpcpp.h"
#include "phimap/v1/kernel_service.grpc.pb.h"
#include "phimap/v1/kernel_service.pb.h"

namespace phimap {

AnswerQueue::AnswerQueue()
    : thread_(StartThread("the answers of kernel services", [this] { Run(); })) {}

AnswerQueue::~AnswerQueue() {
  answers_.Shutdown();
  thread_.join();
}

void AnswerQueue::Run() {
  void* tag = nullptr;
  // Required by Next, but unused: the call's status says how the call ended.
  bool ok = false;
  while (answers_.Next(&tag, &ok)) static_cast<Waiting*>(tag)->OnAnswer();
}

namespace {

using Code = absl::StatusCode;

constexpr int64_t kRetryDelayMs = 500;
constexpr size_t kMaxKnown = 4096;
// gRPC retries an unreachable service, after delays that start at 0.1 s and grow.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "phimap.v1.KernelService"}],
    "retryPolicy": {
      "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})";

// Hint for the most frequent cause of a failed handshake.
constexpr char kOverTls[] =
    " over TLS (its certificate must be issued for its host and signed by an authority in "
    "--kernel_service_ca or, without that flag, by one that the system trusts)";

grpc::ChannelArguments Arguments(const KernelService::Options& options) {
  const auto message = static_cast<int>(std::min<int64_t>(options.max_message_bytes, INT32_MAX));
  grpc::ChannelArguments arguments;
  // Only the operator's list decides where calls go: no proxy and no service config from DNS.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(message);
  arguments.SetMaxSendMessageSize(message);
  // For retries, gRPC keeps a whole request in this buffer until no retry can become necessary.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, message);
  // Allows no compression: a small answer must not inflate to a large one.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetUserAgentPrefix("phimapd");
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const KernelAddress& address,
                                                      const std::string& authorities) {
  if (!address.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = authorities;
  return grpc::SslCredentials(options);
}

// Returns what is wrong with the answer's shape, or an empty string.
std::string ShapeFault(const v1::ComputeBlockResponse& response,
                       const KernelBlockRequest& request) {
  const v1::DenseRows& block = response.block();
  if (block.rows() != request.left_count || block.columns() != request.right->count()) {
    return absl::StrCat("a block of ", block.rows(), " × ", block.columns(), " values, expected ",
                        request.left_count, " × ", request.right->count());
  }
  const bool single = block.values_case() == v1::DenseRows::kFloat32Le;
  if (!single && block.values_case() != v1::DenseRows::kFloat64Le) {
    return "no values, expected float32_le or float64_le";
  }
  const int64_t expected =
      request.left_count * request.right->count() * (single ? int64_t{4} : int64_t{8});
  const auto actual =
      static_cast<int64_t>(single ? block.float32_le().size() : block.float64_le().size());
  if (actual != expected) return absl::StrCat(actual, " bytes of values, expected ", expected);
  const auto diagonal = static_cast<int64_t>(response.diagonal_float64_le().size());
  const int64_t wanted = request.want_diagonal ? 8 * request.left_count : 0;
  if (request.want_diagonal && diagonal != wanted) {
    return absl::StrCat(diagonal, " bytes of the diagonal, expected ", wanted);
  }
  return "";
}

absl::Status ShuttingDown() {
  return MakeError(Code::kUnavailable, reason::kServerShuttingDown, "",
                   "the server is shutting down");
}

}  // namespace

class KernelService::Channel {
 public:
  Channel(const KernelAddress& address, const Options& options)
      : stub_(v1::KernelService::NewStub(grpc::CreateCustomChannel(
            address.target, Credentials(address, options.authorities), Arguments(options)))) {}
  v1::KernelService::Stub& stub() { return *stub_; }

 private:
  const std::unique_ptr<v1::KernelService::Stub> stub_;
};

// One call, with its retry. gRPC owns `message` and `response` while an attempt is in progress.
class KernelService::Call final : public KernelBlockAnswer,
                                  public AnswerQueue::Waiting,
                                  public std::enable_shared_from_this<Call> {
 public:
  Call(KernelService& service, KernelBlockRequest wanted, Done the_done)
      : request(std::move(wanted)),
        done(std::move(the_done)),
        began(std::chrono::steady_clock::now()),
        service_(service) {
    message.set_kernel(request.kernel);
    message.mutable_left()->Swap(request.left.get());
    message.set_want_diagonal(request.want_diagonal);
  }
  ~Call() override = default;

  // Starts an attempt. The service keeps the call alive until it has ended.
  void Begin(v1::KernelService::Stub& stub, SteadyTime deadline) {
    response.Clear();
    grpc::ClientContext& context = NewContext(deadline);
    if (request.trace_parent.has_value()) {
      context.AddMetadata(std::string(kTraceParentKey), request.trace_parent->ToString());
    }
    reader_ = stub.PrepareAsyncComputeBlock(&context, message, service_.answers_.get());
    reader_->StartCall();
    // Nothing may touch this object after Finish: another thread may already handle the answer.
    reader_->Finish(&response, &status, static_cast<AnswerQueue::Waiting*>(this));
  }
  void OnAnswer() override { service_.Answered(shared_from_this()); }
  void Cancel() {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  bool cancelled() const {
    MutexLock lock(&mutex_);
    return cancelled_;
  }
  // Frees the context, which keeps gRPC's call and the channel alive. The answer does not need
  // them.
  void EndAttempt() {
    reader_.reset();  // it lives in the context's call
    MutexLock lock(&mutex_);
    context_.reset();
  }

  RowsView values() const override {
    const v1::DenseRows& block = response.block();
    const bool single = block.values_case() == v1::DenseRows::kFloat32Le;
    return {.data = single ? block.float32_le().data() : block.float64_le().data(),
            .type = single ? FloatType::kFloat32 : FloatType::kFloat64,
            .rows = block.rows(),
            .columns = block.columns()};
  }
  const char* diagonal() const override {
    return request.want_diagonal ? response.diagonal_float64_le().data() : nullptr;
  }

  KernelBlockRequest request;
  Done done;
  const SteadyTime began;
  v1::ComputeBlockRequest message;
  v1::ComputeBlockResponse response;
  grpc::Status status;
  bool sent_examples = false;
  // The service has answered that it does not have the examples.
  bool forgotten = false;

 private:
  // Creates a new context: each attempt needs its own.
  grpc::ClientContext& NewContext(SteadyTime deadline) {
    EndAttempt();
    MutexLock lock(&mutex_);
    context_ = std::make_unique<grpc::ClientContext>();
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
        deadline - std::chrono::steady_clock::now());
    // gRPC measures a time span by its own steady clock.
    context_->set_deadline(gpr_time_from_micros(left.count(), GPR_TIMESPAN));
    if (cancelled_) context_->TryCancel();
    return *context_;
  }

  KernelService& service_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ComputeBlockResponse>> reader_;
  mutable Mutex mutex_;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

namespace {

absl::Status ServiceError(const std::string& service, const std::string& kernel, Code code,
                          absl::string_view reason, absl::string_view what,
                          int64_t retry_delay_ms = 0) {
  return MakeError(
      code, reason, "",
      absl::StrCat("kernel service \"", service, "\", kernel \"", kernel, "\": ", what),
      {{"service", service}, {"kernel", kernel}}, retry_delay_ms);
}

}  // namespace

KernelService::KernelService(const KernelAddress& address, const Options& options,
                             const KernelServiceMetrics& metrics, AnswerQueue& answers)
    : name_(address.name),
      tls_(address.tls),
      options_(options),
      metrics_(metrics),
      channel_(std::make_unique<Channel>(address, options)),
      answers_(answers) {}

KernelService::~KernelService() { Stop(); }

KernelService::Cancel KernelService::Compute(KernelBlockRequest request, Done done) {
  const auto call = std::make_shared<Call>(*this, std::move(request), std::move(done));
  absl::Status refused;
  bool start = false;
  {
    MutexLock lock(&mutex_);
    if (stopping_) {
      refused = ShuttingDown();
    } else if (under_way_.size() < static_cast<size_t>(kMaxCalls)) {
      under_way_.insert(call);
      ++open_;
      start = true;
    } else if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back(call);
      ++open_;
    } else {
      refused = ServiceError(
          name_, call->request.kernel, Code::kResourceExhausted, reason::kKernelQueueFull,
          absl::StrCat("the maximum of ", kMaxWaiting, " calls are already waiting for it"),
          kRetryDelayMs);
    }
  }
  if (refused.ok()) {
    // Counts the call before it can end.
    metrics_.under_way->Increment();
  } else {
    call->done(refused);
    return [] {};
  }
  if (start) Start(call);
  return [weak = std::weak_ptr<Call>(call)] {
    if (const std::shared_ptr<Call> under_way = weak.lock()) under_way->Cancel();
  };
}

SteadyTime KernelService::EndOfTimeLimit(const Call& call) const {
  return call.began + absl::ToChronoNanoseconds(options_.time_limit);
}

void KernelService::Start(const std::shared_ptr<Call>& call) {
  const KernelExamples& right = *call->request.right;
  call->sent_examples = call->forgotten || !Knows(right.digest());
  if (call->sent_examples) {
    *call->message.mutable_right_examples() = right.message();
    call->message.set_right_digest(right.digest());
    metrics_.examples_sent->Increment();
  } else {
    call->message.set_known_right_digest(right.digest());
    call->message.clear_right_digest();
  }
  const SteadyTime deadline = std::min(call->request.deadline, EndOfTimeLimit(*call));
  call->Begin(channel_->stub(), deadline);
}

absl::Status KernelService::ErrorOf(const Call& call) const {
  const grpc::Status& status = call.status;
  const std::string& kernel = call.request.kernel;
  switch (static_cast<int>(status.error_code())) {  // a service may send any number
    case grpc::StatusCode::UNAVAILABLE:
      return ServiceError(name_, kernel, Code::kUnavailable, reason::kKernelServiceUnavailable,
                          absl::StrCat("cannot be reached", tls_ ? kOverTls : "", ": ",
                                       Excerpt(status.error_message())),
                          kRetryDelayMs);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      if (call.request.deadline < EndOfTimeLimit(call)) {
        return absl::DeadlineExceededError(
            "the deadline passed while the kernel service was computing");
      }
      return ServiceError(
          name_, kernel, Code::kUnavailable, reason::kKernelServiceTimedOut,
          absl::StrCat("did not answer within ", absl::FormatDuration(options_.time_limit)),
          kRetryDelayMs);
    default:
      return ServiceError(
          name_, kernel, Code::kFailedPrecondition, reason::kKernelServiceFailed,
          absl::StrCat("answered the error ",
                       absl::StatusCodeToString(static_cast<Code>(status.error_code())), ": ",
                       Excerpt(status.error_message())));
  }
}

void KernelService::Answered(const std::shared_ptr<Call>& call) {
  const std::string& digest = call->request.right->digest();
  const grpc::Status& status = call->status;
  const std::string& kernel = call->request.kernel;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND && !call->sent_examples) {
    Learn(digest, false);
    call->forgotten = true;
    return Start(call);
  }
  if (status.ok()) {
    Learn(digest, true);
    const std::string fault = ShapeFault(call->response, call->request);
    if (fault.empty()) return End(call, std::shared_ptr<const KernelBlockAnswer>(call));
    return End(call,
               ServiceError(name_, kernel, Code::kFailedPrecondition,
                            reason::kKernelServiceAnswerInvalid, absl::StrCat("answered ", fault)));
  }
  if (call->cancelled()) {
    return End(call, stopping()
                         ? ShuttingDown()
                         : absl::CancelledError("the call to the kernel service was cancelled"));
  }
  End(call, ErrorOf(*call));
}

void KernelService::End(const std::shared_ptr<Call>& call, Answer answer) {
  call->EndAttempt();
  if (answer.ok()) {
    metrics_.values->Increment(static_cast<double>(call->request.left_count) *
                               static_cast<double>(call->request.right->count()));
  }
  metrics_.ended[static_cast<int>(answer.status().code())]->Increment();
  metrics_.seconds->Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - call->began).count());
  metrics_.under_way->Decrement();
  std::shared_ptr<Call> next;
  {
    MutexLock lock(&mutex_);
    if (under_way_.erase(call) > 0 && !waiting_.empty()) {
      next = std::move(waiting_.front());
      waiting_.pop_front();
      under_way_.insert(next);
    }
  }
  // Starts the next call in the queue before the answer is handled.
  if (next != nullptr) Start(next);
  call->done(std::move(answer));
  call->done = nullptr;
  // Nothing touches this object after that.
  MutexLock lock(&mutex_);
  --open_;
  changed_.NotifyAll();
}

void KernelService::Stop() {
  std::deque<std::shared_ptr<Call>> waiting;
  std::vector<std::shared_ptr<Call>> under_way;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    waiting.swap(waiting_);
    under_way.assign(under_way_.begin(), under_way_.end());
  }
  for (const std::shared_ptr<Call>& call : under_way) call->Cancel();
  for (const std::shared_ptr<Call>& call : waiting) End(call, ShuttingDown());
  MutexLock lock(&mutex_);
  while (open_ > 0) changed_.Wait(&mutex_);
}

bool KernelService::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

bool KernelService::Knows(const std::string& digest) const {
  MutexLock lock(&mutex_);
  return known_.contains(digest);
}

void KernelService::Learn(const std::string& digest, bool known) {
  MutexLock lock(&mutex_);
  if (!known) {
    known_.erase(digest);
    return;
  }
  if (known_.size() >= kMaxKnown) known_.clear();
  known_.insert(digest);
}

absl::Status KernelService::NotFinite(const std::string& kernel, int64_t row, int64_t column,
                                      double value) const {
  return ServiceError(name_, kernel, Code::kFailedPrecondition, reason::kKernelServiceAnswerInvalid,
                      absl::StrCat("answered ", value, " in row ", row, ", column ", column,
                                   " of a block, expected finite values"));
}

KernelServices::KernelServices(const std::vector<KernelAddress>& addresses,
                               const KernelService::Options& options, KernelMetrics& metrics)
    : answers_(addresses.empty() ? nullptr : std::make_unique<AnswerQueue>()) {
  for (const KernelAddress& address : addresses) {
    services_[address.name] = std::make_unique<KernelService>(
        address, options, metrics.AddService(address.name), *answers_);
  }
}

KernelServices::~KernelServices() = default;

KernelService* KernelServices::Find(absl::string_view name) const {
  const auto found = services_.find(name);
  return found == services_.end() ? nullptr : found->second.get();
}

absl::StatusOr<KernelService*> FindKernelService(const KernelServices* services,
                                                 absl::string_view name, absl::string_view field) {
  KernelService* const service = services == nullptr ? nullptr : services->Find(name);
  if (service != nullptr) return service;
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kKernelServiceNotListed, field,
                   absl::StrCat("kernel service ", Quoted(name),
                                " is not on the operator's list (phimapd --kernel_service)"),
                   {{"service", Excerpt(name)}});
}

void KernelServices::Stop() {
  for (const auto& [name, service] : services_) service->Stop();
}

}  // namespace phimap
