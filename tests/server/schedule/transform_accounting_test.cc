// Tests that the scheduler always knows whether work is pending, however the requests end.
#include <deque>
#include <new>

#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Random integers in [0, n), made from numbers in (-1, 1).
class Draws {
 public:
  explicit Draws(uint64_t seed)
      : numbers_(UniformRows({.rows = 20'000, .cols = 1, .seed = seed})) {}
  int Below(int n) { return static_cast<int>((numbers_(next_++, 0) + 1) / 2 * n); }

 private:
  const Matrix<double> numbers_;
  int64_t next_ = 0;
};

class TransformAccountingTest : public SchedulerFixture {
 protected:
  TransformAccountingTest() {
    for (const int64_t multiplications : {1, 1'000'000}) {
      auto engine = std::make_shared<FakeEngine>(multiplications);
      engine->overflows = 7;
      engine->before = [this](absl::Span<const TransformPart>) { ExpectExactPending(); };
      engines_.push_back(std::move(engine));
    }
  }

  void SubmitOne(Draws& draws) {
    Request& request = requests_.emplace_back();
    request.rows.resize(1 + draws.Below(draws.Below(4) == 0 ? 120 : 5));
    if (draws.Below(5) == 0) request.rows.back() = 7;
    TransformWork work = Work(request, engines_[draws.Below(2)]);
    if (draws.Below(5) == 0) work.deadline = now_ + absl::Seconds(draws.Below(3));
    const int fault = draws.Below(12);
    if (fault == 0) work.prepare = []() -> absl::StatusOr<char*> { throw std::bad_alloc(); };
    if (fault == 1) {
      work.prepare = []() -> absl::StatusOr<char*> { return absl::InvalidArgumentError("NaN"); };
    }
    if (draws.Below(2) == 0) return scheduler_.Submit(std::move(work));
    // This is how an event loop submits small requests.
    std::vector<QueuedWork> batch;
    batch.push_back(*scheduler_.Accept(std::move(work)));
    ExpectExactPending();
    scheduler_.RunBatch(std::move(batch), scratch_);
  }

  // Expects that work is pending exactly while some request is not done.
  void ExpectExactPending() {
    bool pending = false;
    for (const Request& request : requests_) pending |= request.done == 0;
    ASSERT_EQ(scheduler_.TransformsPending(), pending);
  }

  std::vector<std::shared_ptr<FakeEngine>> engines_;
  std::deque<Request> requests_;
};

TEST_F(TransformAccountingTest, WorkIsPendingWhileARequestIsUnfinishedAfterEveryEvent) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    for (int step = 0; step < 1000; ++step) {
      const int event = draws.Below(10);
      if (event < 5) SubmitOne(draws);
      if (event == 5 && requests_.size() >= 4) {
        requests_[requests_.size() - 1 - draws.Below(4)].cancelled = true;
      }
      if (event == 6) now_ += absl::Seconds(1);
      if (event > 6) scheduler_.RunOne(scratch_);
      ExpectExactPending();
    }
    RunAll();
    ExpectExactPending();
    int statuses[17] = {};
    for (const Request& request : requests_) {
      ASSERT_EQ(request.done, 1);
      ++statuses[static_cast<int>(request.status.code())];
    }
    // Every possible outcome must have occurred.
    for (const StatusCode code :
         {StatusCode::kOk, StatusCode::kCancelled, StatusCode::kDeadlineExceeded,
          StatusCode::kInvalidArgument, StatusCode::kResourceExhausted, StatusCode::kOutOfRange}) {
      EXPECT_GT(statuses[static_cast<int>(code)], 0) << absl::StatusCodeToString(code);
    }
    requests_.clear();
  }
}

}  // namespace
}  // namespace phimap::testing
