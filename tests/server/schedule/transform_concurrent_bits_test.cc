// Tests that a row's features are bit-for-bit the same, no matter which other rows are computed
// with it. Several clients and workers use two versions, requests of many sizes and both float
// types. The result for each row is compared with that of the row alone.
#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/thread/mutex.h"
#include "gtest/gtest.h"
#include "server/observe/metrics.h"
#include "server/schedule/compute_pool.h"
#include "server/schedule/transform_scheduler.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

constexpr int64_t kRows = 128;
constexpr int64_t kColumns = 11;
constexpr int kClients = 4;
constexpr int kRequestsEach = 48;

// Counts answers and errors.
class Answers {
 public:
  void Add(const absl::Status& status) {
    MutexLock lock(&mutex_);
    ++answers_;
    if (!status.ok()) ++errors_;
    changed_.NotifyAll();
  }
  void Await(int answers) {
    MutexLock lock(&mutex_);
    while (answers_ < answers) changed_.Wait(&mutex_);
  }
  int errors() {
    MutexLock lock(&mutex_);
    return errors_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
  int errors_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A version, and the features of each row when it is computed alone.
struct ServedVersion {
  std::shared_ptr<const Engine> engine;
  std::string alone;

  int64_t RowBytes() const {
    return engine->output_columns() * FloatTypeBytes(engine->serving_type());
  }
};

struct SentRequest {
  const ServedVersion* version = nullptr;
  int64_t first = 0;
  int64_t rows = 0;
  std::string features;

  bool HasTheBitsOfItsRowsAlone() const {
    return features == version->alone.substr(first * version->RowBytes(), features.size());
  }
};

class TransformConcurrentBitsTest : public ::testing::TestWithParam<int> {
 protected:
  TransformConcurrentBitsTest() {
    AddVersion({.columns = kColumns, .feature_count = 37, .w = WKind::kTriangular});
    AddVersion({.serving_type = FloatType::kFloat64,
                .columns = kColumns,
                .shift = true,
                .scale = true,
                .feature_count = 40,
                .kernel = "poly(degree=3, coef0=1)",
                .w = WKind::kDense,
                .outputs = 19});
  }

  void AddVersion(const PlanShape& shape) {
    ServedVersion version{.engine = *Engine::Load(MakePlan(shape)), .alone = {}};
    EngineScratch scratch;
    for (int64_t i = 0; i < kRows; ++i) {
      std::string row(version.RowBytes(), '\0');
      TransformPart part{.rows = WireRows(rows32_).Slice(i, 1),
                         .features = row.data(),
                         .status = absl::OkStatus()};
      version.engine->Transform(absl::MakeSpan(&part, 1), scratch);
      EXPECT_TRUE(part.status.ok()) << part.status;
      version.alone += row;
    }
    versions_.push_back(std::move(version));
  }

  // The n-th request of a client. A batch of 64 rows holds several of the small requests. A request
  // of 100 rows takes three tiles.
  SentRequest MakeRequest(int client, int n) const {
    constexpr int64_t kSizes[] = {1, 2, 5, 1, 12, 1, 31, 7, 48, 1, 3, 100, 1};
    const int64_t rows = kSizes[(3 * client + n) % std::size(kSizes)];
    return {.version = &versions_[(client + n / 3) % versions_.size()],
            .first = (37 * client + 11 * n) % (kRows - rows + 1),
            .rows = rows,
            .features = {}};
  }

  void Submit(TransformScheduler& scheduler, int n, SentRequest& request, Answers& answers) {
    TransformWork work{.engine = request.version->engine,
                       .rows = (n % 2 == 0 ? WireRows(rows32_) : WireRows(rows64_))
                                   .Slice(request.first, request.rows)};
    work.prepare = [&request]() -> absl::StatusOr<char*> {
      request.features.resize(request.rows * request.version->RowBytes());
      return request.features.data();
    };
    work.done = [&answers](const absl::Status& status) { answers.Add(status); };
    scheduler.Submit(std::move(work));
  }

  // Runs a client that sends a burst of requests, waits for the answers, and starts over.
  void RunClient(TransformScheduler& scheduler, int client, std::deque<SentRequest>& sent) {
    Answers answers;
    for (int n = 0; n < kRequestsEach; ++n) {
      Submit(scheduler, n, sent.emplace_back(MakeRequest(client, n)), answers);
      if (n % 16 == 15) answers.Await(n + 1);
    }
    EXPECT_EQ(answers.errors(), 0);
  }

  void ExpectBitsOfRowsAlone(TransformScheduler& scheduler, int workers) {
    std::vector<std::deque<SentRequest>> sent(kClients);
    {
      ComputePool pool(workers, [&scheduler] { scheduler.RunWorker(); });
      RunTogether(kClients, [&](int c) { RunClient(scheduler, c, sent[c]); });
      scheduler.Drain();
    }
    for (int c = 0; c < kClients; ++c) {
      for (size_t n = 0; n < sent[c].size(); ++n) {
        EXPECT_TRUE(sent[c][n].HasTheBitsOfItsRowsAlone())
            << "client " << c << ", request " << n << " of " << sent[c][n].rows << " rows";
      }
    }
  }

  const Matrix<float> rows32_ = UniformFloatRows({.rows = kRows, .cols = kColumns, .seed = 21});
  const Matrix<double> rows64_ = Converted<double, float>(rows32_.view());
  std::vector<ServedVersion> versions_;
  Metrics metrics_;
};

TEST_P(TransformConcurrentBitsTest, RowsHaveTheBitsTheyHaveAloneWhenWorkersShareThem) {
  TransformScheduler scheduler({}, metrics_.transform());
  ExpectBitsOfRowsAlone(scheduler, GetParam());
  EXPECT_EQ(metrics_.transform().batch_requests->Collect().histogram.sample_sum,
            kClients * kRequestsEach);
}

// The requests are queued before the workers start, so that some of them share a batch on any
// machine.
TEST_P(TransformConcurrentBitsTest, RowsThatGatheredBeforeTheWorkersCameHaveTheirBits) {
  TransformScheduler scheduler({}, metrics_.transform());
  std::vector<std::deque<SentRequest>> sent(kClients);
  Answers answers;
  RunTogether(kClients, [&](int c) {
    for (int n = 0; n < kRequestsEach; ++n) {
      Submit(scheduler, n, sent[c].emplace_back(MakeRequest(c, n)), answers);
    }
  });
  {
    ComputePool pool(GetParam(), [&scheduler] { scheduler.RunWorker(); });
    answers.Await(kClients * kRequestsEach);
    scheduler.Drain();
  }
  EXPECT_EQ(answers.errors(), 0);
  const auto passes = metrics_.transform().batch_requests->Collect().histogram;
  EXPECT_LT(static_cast<int>(passes.sample_count), kClients * kRequestsEach);
  for (const std::deque<SentRequest>& requests : sent) {
    for (const SentRequest& request : requests) {
      EXPECT_TRUE(request.HasTheBitsOfItsRowsAlone()) << request.rows << " rows";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, TransformConcurrentBitsTest, ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace phimap::testing
