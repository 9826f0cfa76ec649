#include "client/cli/bench/bench_load.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cpp/channel_factory.h"
#include "client/cpp/grpc_status.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"
#include "inference/inference_service.pb.h"
#include "phimap/v1/predict_service.pb.h"
#include "phimap/v1/transform_service.pb.h"

namespace phimap::cli {
namespace {

// Rows to send, and the version that maps them.
struct BenchRows {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  absl::string_view reference;
  int32_t rows = 0;
  int32_t columns = 0;
  // Float32 numbers, row after row.
  std::string values;
};

struct BenchAnswer {
  // "name@number".
  std::string version;
  int64_t rows = 0;
  int64_t feature_columns = 0;
  int64_t feature_bytes = 0;
};

template <typename Request>
std::string RowsRequest(const BenchRows& rows) {
  Request request;
  request.set_reference(std::string(rows.reference));
  v1::DenseRows& dense = *request.mutable_examples()->mutable_dense();
  dense.set_rows(rows.rows);
  dense.set_columns(rows.columns);
  dense.set_float32_le(rows.values);
  return request.SerializeAsString();
}

std::string InferenceBytes(const BenchRows& rows) {
  inference::ModelInferRequest request;
  const size_t at = rows.reference.find('@');
  request.set_model_name(std::string(rows.reference.substr(0, at)));
  if (at != absl::string_view::npos) {
    request.set_model_version(std::string(rows.reference.substr(at + 1)));
  }
  auto& x = *request.add_inputs();
  x.set_name("x");
  x.set_datatype("FP32");
  x.add_shape(rows.rows);
  x.add_shape(rows.columns);
  request.add_raw_input_contents(rows.values);
  return request.SerializeAsString();
}

template <typename Message>
absl::StatusOr<Message> Parsed(absl::string_view bytes) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return absl::InternalError("the server's answer is not a message of its protocol");
}

absl::StatusOr<BenchAnswer> ReadNative(absl::string_view bytes) {
  const absl::StatusOr<v1::TransformResponse> answer = Parsed<v1::TransformResponse>(bytes);
  if (!answer.ok()) return answer.status();
  const v1::DenseRows& features = answer->features();
  return BenchAnswer{.version = client::ReferenceTo(answer->version()),
                     .rows = features.rows(),
                     .feature_columns = features.columns(),
                     .feature_bytes = static_cast<int64_t>(features.float32_le().size() +
                                                           features.float64_le().size())};
}

absl::StatusOr<BenchAnswer> ReadPrediction(absl::string_view bytes) {
  const absl::StatusOr<v1::PredictResponse> answer = Parsed<v1::PredictResponse>(bytes);
  if (!answer.ok()) return answer.status();
  const int64_t rows = answer->labels_size() + answer->values_size();
  return BenchAnswer{.version = client::ReferenceTo(answer->version()),
                     .rows = rows,
                     .feature_columns = 1,
                     .feature_bytes = rows};
}

absl::StatusOr<BenchAnswer> ReadInference(absl::string_view bytes) {
  const absl::StatusOr<inference::ModelInferResponse> answer =
      Parsed<inference::ModelInferResponse>(bytes);
  if (!answer.ok()) return answer.status();
  if (answer->outputs_size() != 1 || answer->outputs(0).shape_size() != 2 ||
      answer->raw_output_contents_size() != 1) {
    return absl::InternalError("the server's answer does not have one output of rows");
  }
  return BenchAnswer{.version = absl::StrCat(answer->model_name(), "@", answer->model_version()),
                     .rows = answer->outputs(0).shape(0),
                     .feature_columns = answer->outputs(0).shape(1),
                     .feature_bytes = static_cast<int64_t>(answer->raw_output_contents(0).size())};
}

// What is particular to a kind of calls.
struct Protocol {
  absl::string_view name;
  // "/package.Service/Method".
  const char* method;
  // Returns a serialized request.
  std::string (*request)(const BenchRows& rows);
  // Parses the bytes of an answer. INTERNAL if they are malformed.
  absl::StatusOr<BenchAnswer> (*read)(absl::string_view bytes);
};

const Protocol& ProtocolOf(BenchProtocol protocol) {
  static constexpr Protocol kProtocols[] = {
      {"native", "/phimap.v1.TransformService/Transform", RowsRequest<v1::TransformRequest>,
       ReadNative},
      {"predict", "/phimap.v1.PredictService/Predict", RowsRequest<v1::PredictRequest>,
       ReadPrediction},
      {"inference", "/inference.GRPCInferenceService/ModelInfer", InferenceBytes, ReadInference},
  };
  return kProtocols[static_cast<int>(protocol)];
}

// Positions of utime and stime in /proc/PID/stat, counted from 0 after the command's name
// (proc(5)).
constexpr size_t kUserTicks = 11;
constexpr size_t kSystemTicks = 12;

double Microseconds(const timeval& time) {
  return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Returns the bytes that a line of `text` such as "VmRSS:   1234 kB" states. `key` is the start of
// the line. 0 if there is no such line.
int64_t KibibytesOf(const std::string& text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, key)) continue;
    for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
      int64_t kib = 0;
      if (absl::SimpleAtoi(word, &kib)) return kib * 1024;
    }
  }
  return 0;
}

// Returns the use of this process, to the microsecond. Memory is 0.
ProcessUse OwnUse() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.cpu_us = Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime)};
}

}  // namespace

absl::string_view ProtocolName(BenchProtocol protocol) { return ProtocolOf(protocol).name; }

absl::StatusOr<ProcessUse> UseOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  const std::string stat = ReadAll(folder + "/stat");
  // The command's name is in parentheses and may hold anything, spaces and ')' included.
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) {
    return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  }
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  int64_t user = 0;
  int64_t system = 0;
  if (fields.size() <= kSystemTicks || !absl::SimpleAtoi(fields[kUserTicks], &user) ||
      !absl::SimpleAtoi(fields[kSystemTicks], &system)) {
    return absl::InternalError(absl::StrCat(folder, "/stat cannot be read"));
  }
  const std::string status = ReadAll(folder + "/status");
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessUse{.cpu_us = 1e6 * static_cast<double>(user + system) / ticks_per_second,
                    .resident_bytes = KibibytesOf(status, "VmRSS:"),
                    .peak_resident_bytes = KibibytesOf(status, "VmHWM:")};
}

int UsableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return CPU_COUNT(&set);
}

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
  const grpc::Slice slice(
      ProtocolOf(options.protocol)
          .request({options.reference, options.rows, options.columns, std::move(values)}));
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
        ProtocolOf(options_.protocol)
            .read({reinterpret_cast<const char*>(bytes.begin()), bytes.size()}));
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
    call.reader = call.stub->PrepareUnaryCall(&*call.context, ProtocolOf(options_.protocol).method,
                                              request, &queue);
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
      if (short_answer) ++result_.errors[reason::kAnswerTooShort];
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
