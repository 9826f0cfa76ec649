// Measures the cost of recording one Transform: all counts and timings of a request of one row,
// from the request headers to the end of the answer.
//
// Not part of bench/run, because this program compares with a limit of 0.3 µs, not with another
// system.
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "bench/interleaved.h"
#include "core/linalg/blas.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/plan/residual.h"
#include "core/status/check.h"
#include "core/thread/steady_time.h"
#include "prometheus/counter.h"
#include "server/admission/request_memory.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/version_series.h"

namespace phimap::bench {
namespace {

constexpr double kLimitUs = 0.3;
// Clock readings that only metrics need: at the beginning and end of the call (Call), at the
// beginning and end of the answer (PlannedAnswer), and when the compute pool becomes free again.
// The scheduler's three readings are not counted, because they decide about deadlines, inline runs
// and retry delays.
constexpr int kClockReadings = 5;
// Memory charged for a message of one row of 64 numbers: its bytes and its parsed size.
constexpr int64_t kRequestBytes = 1024;
constexpr int64_t kAnswerBytes = 2048;

// Does everything that records a request, in the server's order.
class Recorder {
 public:
  Recorder()
      : method_(metrics_.AddMethod("phimap.v1.TransformService", "Transform", "unary")),
        version_(metrics_.registry().versions->Open("letters", 1)) {}

  void RecordOne() {
    const TransformMetrics& transform = metrics_.transform();
    const absl::Time started = SteadyNow();
    method_.started->Increment();
    std::optional<RequestMemory::Charge> request = memory_.Take(nullptr, kRequestBytes);
    method_.messages_received->Increment();
    std::optional<RequestMemory::Charge> answer = memory_.TakeForAnswer(nullptr, kAnswerBytes);
    transform.parse_seconds->Observe(4e-6);
    transform.queue_seconds->Observe(30e-6);
    last_ = SteadyNow();
    transform.RequestComputed(1, 60e-6);
    version_->rows()->Increment(1);
    const RowsView features{reinterpret_cast<const char*>(features_.data()), FloatType::kFloat32, 1,
                            static_cast<int64_t>(features_.size())};
    version_->drift().Sample(features, features, nullptr);
    transform.BatchComputed(1, 1);
    method_.messages_sent->Increment();
    method_.Ended(absl::OkStatus(), absl::ToDoubleSeconds(SteadyNow() - started));
    PHIMAP_CHECK(!logger_.Enabled(LogLevel::kDebug));
    request.reset();
    answer.reset();
    transform.answer_seconds->Observe(absl::ToDoubleSeconds(SteadyNow() - last_.load()));
    last_ = SteadyNow();
    transform.pool_busy_seconds->Increment(90e-6);
  }

 private:
  Metrics metrics_;
  Logger logger_{LogLevel::kInfo};
  RequestMemory memory_{int64_t{512} << 20, metrics_.transform().memory_bytes};
  const MethodMetrics method_;
  const std::unique_ptr<const VersionSeries::Lease> version_;
  const std::vector<float> features_ = std::vector<float>(2048, 0.02f);
  // Written so that the compiler cannot remove the clock readings.
  std::atomic<absl::Time> last_{absl::InfinitePast()};
};

// Other threads that record all the time, like the server's threads under full load.
class Company {
 public:
  Company(Recorder& recorder, int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &recorder] {
        while (!stop_.load(std::memory_order_relaxed)) recorder.RecordOne();
      });
    }
  }
  ~Company() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

double TimeAmong(Recorder& recorder, int others) {
  const Company company(recorder, others);
  std::vector<Contender> contenders = {{"record", [&recorder] { recorder.RecordOne(); }}};
  TimeInterleaved({.rounds = 15, .round_seconds = 0.05}, contenders);
  return contenders[0].median_us;
}

constexpr char kKernel[] = "rbf(gamma=0.01)";

// Builds F2 with these landmarks. F2 has as many features as landmarks.
BuiltMapping F2(ConstMatrixView<double> landmarks) {
  absl::StatusOr<BuiltMapping> built =
      BuildF2({.kernel = *KernelExpression::Parse(kKernel),
               .input = {.columns = landmarks.cols(), .shift = {}, .scale = {}, .projection = {}},
               .landmarks = landmarks},
              NeverStop);
  PHIMAP_CHECK(built.ok());
  return *std::move(built);
}

// Times the monitoring of input drift, which is called for every request and measures one request
// in kEvery.
void TimeDrift(int64_t features) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  Matrix<double> landmarks(features, 64);
  for (int64_t i = 0; i < landmarks.size(); ++i) landmarks.data()[i] = normal(random);
  const BuiltMapping mapping = F2(landmarks.view());
  const std::optional<Residual> residual =
      Residual::Of(mapping.served, {.spec_text = "f2()", .kernel_text = kKernel});
  PHIMAP_CHECK(residual.has_value());
  const std::vector<float> answer(static_cast<size_t>(features), 0.02f);
  const RowsView answers{reinterpret_cast<const char*>(answer.data()), FloatType::kFloat32, 1,
                         features};
  const std::vector<float> row(64, 0.5f);
  const RowsView rows{reinterpret_cast<const char*>(row.data()), FloatType::kFloat32, 1, 64};
  prometheus::Counter counters[4];
  const InputDrift drift({&counters[0], &counters[1], &counters[2], &counters[3]});
  std::vector<Contender> contenders = {{"drift", [&] {
                                          for (uint32_t i = 0; i < InputDrift::kEvery; ++i) {
                                            drift.Sample(rows, answers, &*residual);
                                          }
                                        }}};
  TimeInterleaved({.rounds = 15, .round_seconds = 0.05}, contenders);
  absl::PrintF("drift of F2, %4d features  %6.3f us   a call; one in %d measures its first row\n",
               features, contenders[0].median_us / InputDrift::kEvery, InputDrift::kEvery);
}

int Run(int others, bool check) {
  UseOneBlasThread();
  Recorder recorder;
  std::vector<Contender> contenders = {{"record", [&recorder] { recorder.RecordOne(); }},
                                       {"clock", [] {
                                          static std::atomic<absl::Time> last;
                                          for (int i = 0; i < kClockReadings; ++i)
                                            last = SteadyNow();
                                        }}};
  TimeInterleaved({.rounds = 15, .round_seconds = 0.05}, contenders);
  const double record_us = contenders[0].median_us;
  absl::PrintF("record one call            %6.3f us   limit %.1f us\n", record_us, kLimitUs);
  absl::PrintF("  of it reading the clock  %6.3f us   %d times\n", contenders[1].median_us,
               kClockReadings);
  if (others > 0) {
    absl::PrintF("among %2d more that record  %6.3f us   wall time of one thread\n", others,
                 TimeAmong(recorder, others));
  }
  for (const int64_t features : {512, 2048}) TimeDrift(features);
  return check && record_us > kLimitUs ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) {
  CLI::App app("Measures what it costs to record one Transform.");
  int others = 1;
  bool check = false;
  app.add_option("--others", others,
                 "Other threads that record at the same time, for the line 'among'")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_flag("--check", check, "Exit with 1 if the limit is exceeded");
  CLI11_PARSE(app, argc, argv);
  return phimap::bench::Run(others, check);
}
