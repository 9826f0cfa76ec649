#include "client/cli/bench/bench_load.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/bench/bench_messages.h"
#include "client/cli/bench/bench_schedule.h"
#include "client/cpp/channel_factory.h"
#include "client/cpp/grpc_status.h"
#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"

namespace phimap::cli {
namespace {

// Calls rotate through these requests, so that a server cannot answer from one row in its cache.
constexpr int kRequests = 16;
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void SleepUntilNs(int64_t time_ns) {
  const timespec until{.tv_sec = time_ns / 1'000'000'000, .tv_nsec = time_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

int64_t ToNs(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

// Returns a request with random rows: uniform numbers of variance 1, like those of a standardized
// column.
grpc::ByteBuffer MakeRequest(const LoadOptions& options, std::mt19937_64& random) {
  std::uniform_real_distribution<float> uniform(-std::sqrt(3.0f), std::sqrt(3.0f));
  std::string values(static_cast<size_t>(options.rows) * options.columns * sizeof(float), '\0');
  for (size_t i = 0; i < values.size(); i += sizeof(float)) {
    const float value = uniform(random);
    std::memcpy(values.data() + i, &value, sizeof(value));
  }
  const grpc::Slice slice(RequestBytes(
      options.protocol, {options.reference, options.rows, options.columns, std::move(values)}));
  return grpc::ByteBuffer(&slice, 1);
}

// A call that is reused when it has ended.
struct Call {
  grpc::GenericStub* stub = nullptr;
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer answer;
  grpc::Status status;
  CallTimes times;
};

// One run. `Complete` counts answers and `Watch` measures processes at the same time, in separate
// fields of the result.
class LoadRun {
 public:
  LoadRun(const LoadOptions& options, client::CancelToken& cancel)
      : options_(options), cancel_(cancel) {}

  absl::StatusOr<LoadResult> Run() {
    PHIMAP_RETURN_IF_ERROR(Connect());
    PHIMAP_RETURN_IF_ERROR(FirstCall());
    MakeCalls();
    const int64_t start = NowNs();
    window_.begin_ns = start + ToNs(options_.warmup_seconds);
    window_.end_ns = window_.begin_ns + ToNs(options_.seconds);
    std::thread completions = StartThread("answers", [this] {
      RequestTimeSlice(kShortTimeSlice);
      Complete();
    });
    std::thread issuer = StartThread(
        "calls", [this, start] { options_.open_loop() ? IssueOnTime(start) : IssueFirst(); });
    const absl::Status watched = Watch();
    stop_ = true;
    free_changed_.notify_all();
    issuer.join();
    completions.join();
    PHIMAP_RETURN_IF_ERROR(watched);
    result_.seconds = window_.seconds();
    return std::move(result_);
  }

 private:
  absl::Status Connect() {
    PHIMAP_ASSIGN_OR_RETURN(const client::ChannelFactory channels,
                            client::ChannelFactory::Create(options_.target, options_.connect));
    const absl::Time deadline = absl::Now() + kConnectTimeout;
    for (int i = 0; i < options_.channels; ++i) {
      std::shared_ptr<grpc::Channel> channel = channels.Make();
      if (!channel->WaitForConnected(absl::ToChronoTime(deadline))) {
        return absl::UnavailableError("no connection within 5 s");
      }
      stubs_.push_back(std::make_unique<grpc::GenericStub>(std::move(channel)));
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < kRequests; ++i) {
      requests_.push_back(MakeRequest(options_, random));
    }
    return absl::OkStatus();
  }

  // Makes the first call. It shows that the server can answer, and how large an answer is.
  absl::Status FirstCall() {
    grpc::CompletionQueue queue;
    Call call{.stub = stubs_.front().get()};
    Start(call, queue);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    PHIMAP_RETURN_IF_ERROR(client::FromGrpc(call.status));
    grpc::Slice bytes;
    if (!call.answer.DumpToSingleSlice(&bytes).ok()) {
      return absl::InternalError("the server's answer cannot be read");
    }
    PHIMAP_ASSIGN_OR_RETURN(
        const BenchAnswer answer,
        ReadAnswer(options_.protocol,
                   {reinterpret_cast<const char*>(bytes.begin()), bytes.size()}));
    if (answer.rows != options_.rows) {
      return absl::InternalError(
          "the server's answer does not have one row of features for each row");
    }
    result_.version = answer.version;
    result_.feature_columns = answer.feature_columns;
    smallest_answer_bytes_ = answer.feature_bytes;
    return absl::OkStatus();
  }

  void MakeCalls() {
    const int count = options_.open_loop() ? options_.max_in_flight : options_.callers;
    calls_ = std::vector<Call>(count);
    for (int i = 0; i < count; ++i) {
      calls_[i].stub = stubs_[i % stubs_.size()].get();
      free_.push_back(&calls_[i]);
    }
  }

  void Start(Call& call, grpc::CompletionQueue& queue) {
    call.answer.Clear();
    call.context.emplace();
    call.times.sent_ns = NowNs();
    call.context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(timeout())));
    const grpc::ByteBuffer& request = requests_[next_request_++ % requests_.size()];
    call.reader =
        call.stub->PrepareUnaryCall(&*call.context, MethodOf(options_.protocol), request, &queue);
    call.reader->StartCall();
    call.reader->Finish(&call.answer, &call.status, &call);
  }

  void Issue(Call& call, int64_t due_ns) {
    ++unfinished_;
    call.times.due_ns = due_ns;
    Start(call, queue_);
  }

  // Issues the first call of each caller; Complete issues the next ones.
  void IssueFirst() {
    for (Call& call : calls_) Issue(call, NowNs());
    Finished();
  }

  void IssueOnTime(int64_t start_ns) {
    const OpenLoopSchedule schedule{start_ns, options_.rate};
    prctl(PR_SET_TIMERSLACK, 1);  // the default lets this thread wake 50 us late
    RequestTimeSlice(kShortTimeSlice);
    for (int64_t i = 0; !stop_; ++i) {
      const int64_t due = schedule.DueNs(i);
      if (due >= window_.end_ns) break;
      if (due > NowNs()) SleepUntilNs(due);
      Call* const call = TakeFree();
      if (call == nullptr) break;
      Issue(*call, due);
    }
    Finished();
  }

  // Returns a call that is not in flight, and waits for one to end if necessary; nullptr when the
  // run is over.
  Call* TakeFree() {
    std::unique_lock<std::mutex> lock(mutex_);
    free_changed_.wait_for(lock, std::chrono::seconds(timeout() + 1),
                           [&] { return stop_ || !free_.empty(); });
    if (stop_ || free_.empty()) return nullptr;
    Call* const call = free_.front();  // first in, first out: the channels take turns
    free_.pop_front();
    return call;
  }

  // Called when a call or the issuer has ended. After the last one no event can arrive.
  void Finished() {
    if (--unfinished_ == 0) queue_.Shutdown();
  }

  // Body of the thread that reads answers.
  void Complete() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      Call& call = *static_cast<Call*>(tag);
      call.times.done_ns = NowNs();
      Count(call);
      if (options_.open_loop()) {
        Release(call);
      } else if (!stop_ && call.times.done_ns < window_.end_ns) {
        Issue(call, call.times.done_ns);
      }
      Finished();
    }
  }

  void Release(Call& call) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      free_.push_back(&call);
    }
    free_changed_.notify_one();
  }

  void Count(const Call& call) {
    const bool short_answer =
        call.status.ok() && call.answer.Length() < static_cast<size_t>(smallest_answer_bytes_);
    const bool answered = call.status.ok() && !short_answer;
    if (window_.CountsForRate(call.times)) {
      ++result_.calls;
      if (answered) ++result_.answered;
      if (short_answer) ++result_.errors["ANSWER_TOO_SHORT"];
      if (!call.status.ok()) {
        const absl::Status status = client::FromGrpc(call.status);
        ++result_.errors[absl::StatusCodeToString(status.code())];
      }
    }
    if (!window_.CountsForLatency(call.times, options_.open_loop())) return;
    if (answered) result_.latency.Record(call.times.LatencyNs());
    if (call.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      result_.refusal_latency.Record(call.times.LatencyNs());
    }
    if (options_.open_loop()) result_.lateness.Record(call.times.LatenessNs());
  }

  // Sleeps through the run and measures the resources of generator and server within the window.
  absl::Status Watch() {
    if (SleepUntilOrCancelled(window_.begin_ns)) return absl::CancelledError("interrupted");
    const ProcessUse own_before = OwnUse();
    std::optional<ProcessUse> server_before;
    if (options_.server_pid != 0) {
      PHIMAP_ASSIGN_OR_RETURN(server_before, UseOf(options_.server_pid));
    }
    if (SleepUntilOrCancelled(window_.end_ns)) return absl::CancelledError("interrupted");
    result_.generator_cpu_us = OwnUse().cpu_us - own_before.cpu_us;
    if (!server_before.has_value()) return absl::OkStatus();
    PHIMAP_ASSIGN_OR_RETURN(result_.server, UseOf(options_.server_pid));
    result_.server->cpu_us -= server_before->cpu_us;
    return absl::OkStatus();
  }

  bool SleepUntilOrCancelled(int64_t time_ns) {
    return cancel_.WaitFor(absl::Nanoseconds(time_ns - NowNs()));
  }

  int64_t timeout() const { return static_cast<int64_t>(std::ceil(options_.timeout_seconds)); }

  const LoadOptions& options_;
  client::CancelToken& cancel_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<grpc::ByteBuffer> requests_;
  int64_t smallest_answer_bytes_ = 0;
  BenchWindow window_;
  std::vector<Call> calls_;
  grpc::CompletionQueue queue_;
  std::atomic<uint64_t> next_request_ = 0;
  std::atomic<bool> stop_ = false;
  // Number of calls in flight, plus 1 while the issuer runs.
  std::atomic<int64_t> unfinished_ = 1;
  LoadResult result_;

  std::mutex mutex_;
  std::condition_variable free_changed_;
  // Guarded by mutex_.
  std::deque<Call*> free_;
};

}  // namespace

absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options, client::CancelToken& cancel) {
  return LoadRun(options, cancel).Run();
}

}  // namespace phimap::cli
