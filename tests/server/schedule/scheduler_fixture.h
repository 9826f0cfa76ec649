// A scheduler that tests run step by step, an engine that reports what it computes, and requests
// that record their outcome.
#ifndef PHIMAP_TESTS_SERVER_SCHEDULE_SCHEDULER_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_SCHEDULE_SCHEDULER_FIXTURE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/observe/metrics.h"
#include "server/schedule/transform_scheduler.h"

namespace phimap::testing {

// Maps one float64 number to twice its value.
class FakeEngine : public Engine {
 public:
  explicit FakeEngine(int64_t multiplications_per_row = 1)
      : Engine({.input = {.columns = 1}, .output_columns = 1, .serving_type = FloatType::kFloat64}),
        multiplications_per_row_(multiplications_per_row) {}

  int64_t memory_bytes() const override { return 8; }
  int64_t multiplications_per_row() const override { return multiplications_per_row_; }
  void Transform(absl::Span<TransformPart> parts, EngineScratch&) const override {
    if (before) before(parts);
    for (TransformPart& part : parts) {
      for (int64_t i = 0; i < part.rows.rows(); ++i) {
        double x = 0;
        part.rows.CopyRow(i, &x);
        static_cast<double*>(part.features)[i] = 2 * x;
        if (x == overflows) part.status = Overflow(i);
      }
    }
  }

  // Called with the parts of each batch before the batch is computed.
  std::function<void(absl::Span<const TransformPart>)> before;
  // For this input, Transform reports that the result is too large.
  double overflows = -1;

 private:
  static absl::Status Overflow(int64_t row) {
    return MakeError(absl::StatusCode::kOutOfRange, "VALUE_NOT_REPRESENTABLE",
                     absl::StrCat("rows[", row, "]"), "too large", {{"row", absl::StrCat(row)}});
  }

  const int64_t multiplications_per_row_;
};

struct Request {
  std::vector<double> rows;
  std::vector<double> features;
  std::atomic<bool> cancelled{false};
  int prepared = 0;
  int done = 0;
  absl::Status status;
};

class SchedulerFixture : public ::testing::Test {
 protected:
  SchedulerFixture() : scheduler_({.now = [this] { return now_; }}, metrics_.transform()) {}
  // REQUIRES: the test has run all the work that it submitted.
  ~SchedulerFixture() override { scheduler_.Drain(); }

  TransformWork Work(Request& request, std::shared_ptr<const Engine> engine) {
    TransformWork work{.engine = std::move(engine)};
    work.rows = RowsView{reinterpret_cast<const char*>(request.rows.data()), FloatType::kFloat64,
                         static_cast<int64_t>(request.rows.size()), 1};
    work.field = "examples.dense.";
    work.cancelled = &request.cancelled;
    work.prepare = [&request]() -> absl::StatusOr<char*> {
      ++request.prepared;
      request.features.resize(request.rows.size());
      return reinterpret_cast<char*>(request.features.data());
    };
    work.done = [&request](const absl::Status& status) {
      ++request.done;
      request.status = status;
    };
    return work;
  }

  void RunAll() {
    while (scheduler_.RunOne(scratch_)) {
    }
  }

  absl::Time now_ = absl::UnixEpoch();
  Metrics metrics_;
  EngineScratch scratch_;
  TransformScheduler scheduler_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SCHEDULE_SCHEDULER_FIXTURE_H_
