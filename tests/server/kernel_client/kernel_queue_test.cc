// Tests KernelQueue, which sends the requests for one version to a kernel service. The service is
// real, and runs in this process.
#include "server/kernel_client/kernel_queue.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "phimap/v1/examples.pb.h"
#include "prometheus/registry.h"
#include "server/kernel_client/kernel_service.h"
#include "tests/server/support/gate.h"
#include "tests/server/support/scripted_kernel.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 3;
constexpr int64_t kLandmarks = 4;
// The scripted service refuses a block that contains this number.
constexpr double kBadNumber = 1e6;

class KernelQueueTest : public ::testing::Test {
 protected:
  KernelQueueTest()
      : metrics_(registry_),
        services_({{.name = "here", .target = kernel_.address(), .tls = false}},
                  {.authorities = "", .time_limit = absl::Seconds(60)}, metrics_),
        landmarks_(UniformRows({.rows = kLandmarks, .cols = kColumns, .seed = 1})) {
    RemoteFeatures block{.kernel = "rbf", .endpoint = "here"};
    for (int64_t i = 0; i < kLandmarks; ++i) {
      block.examples.emplace_back(reinterpret_cast<const char*>(landmarks_.row(i)),
                                  kColumns * sizeof(double));
    }
    queue_ = std::make_shared<KernelQueue>(*services_.Find("here"), block, kColumns,
                                           /*want_diagonal=*/true);
  }
  ~KernelQueueTest() override {
    gate_.Open();
    services_.Stop();
  }

  // A submitted row, and its outcome.
  struct Asked {
    Matrix<double> row = Matrix<double>(1, kColumns);
    std::atomic<bool> cancelled{false};
    absl::Time deadline = absl::InfiniteFuture();
    Gate done;
    // The thread that delivered the answer.
    std::thread::id thread;
    std::optional<absl::StatusOr<KernelRows>> answer;

    const absl::StatusOr<KernelRows>& Wait() {
      done.Wait();
      return *answer;
    }
  };

  std::shared_ptr<Asked> Ask(double first, const std::function<void(Asked&)>& change = nullptr) {
    const auto asked = std::make_shared<Asked>();
    asked->row(0, 0) = first;
    if (change) change(*asked);
    queue_->Submit({.count = 1,
                    .bytes = kColumns * static_cast<int64_t>(sizeof(double)),
                    .append =
                        [asked](v1::Examples& to) {
                          AppendExamples(WireRows(asked->row), ExampleKind::kDense, to);
                        },
                    .deadline = asked->deadline,
                    .cancelled = &asked->cancelled,
                    .done =
                        [asked](absl::StatusOr<KernelRows> answer) {
                          asked->thread = std::this_thread::get_id();
                          asked->answer = std::move(answer);
                          asked->done.Open();
                        }});
    return asked;
  }

  void ExpectValues(Asked& asked) {
    const absl::StatusOr<KernelRows>& answer = asked.Wait();
    ASSERT_TRUE(answer.ok()) << answer.status();
    std::vector<double> values(kLandmarks);
    ASSERT_EQ(answer->values().rows, 1);
    ASSERT_EQ(answer->values().columns, kLandmarks);
    answer->values().CopyRow(0, values.data());
    for (int64_t j = 0; j < kLandmarks; ++j) {
      EXPECT_EQ(values[j], ScriptedKernel::Kernel(asked.row.row(0), landmarks_.row(j), kColumns));
    }
    double diagonal = 0;
    std::memcpy(&diagonal, answer->diagonal(), sizeof(double));
    EXPECT_EQ(diagonal, 1);
  }

  // Makes the service wait at the gate before each answer, and refuse a block that contains
  // kBadNumber with `code`.
  void HoldAnswers(grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT) {
    gate_.Close();
    kernel_.Say([this, code](const v1::ComputeBlockRequest& request, v1::ComputeBlockResponse&) {
      gate_.Wait();
      const std::string& bytes = request.left().dense().float64_le();
      for (size_t at = 0; at < bytes.size(); at += sizeof(double)) {
        double number = 0;
        std::memcpy(&number, bytes.data() + at, sizeof(number));
        if (number == kBadNumber) {
          return grpc::Status(code, "no such example");
        }
      }
      return grpc::Status::OK;
    });
  }
  void AwaitCalls(int count) {
    while (kernel_.calls() < count) std::this_thread::yield();
  }
  // Queues a row with kBadNumber between good rows, so that they are sent together. Expects that
  // the good rows get their values, and returns the error of the bad row.
  absl::Status ErrorOfBadAmongGood(grpc::StatusCode code) {
    HoldAnswers(code);
    std::vector<std::shared_ptr<Asked>> good;
    for (int i = 0; i < KernelQueue::kCalls; ++i) {
      good.push_back(Ask(i));
      AwaitCalls(i + 1);
    }
    good.push_back(Ask(0.5));
    const auto bad = Ask(kBadNumber);
    good.push_back(Ask(0.25));
    gate_.Open();
    for (const auto& asked : good) ExpectValues(*asked);
    return bad->Wait().status();
  }

  // Makes all calls that the queue may make at once, and holds their answers.
  std::vector<std::shared_ptr<Asked>> FillCalls() {
    HoldAnswers();
    std::vector<std::shared_ptr<Asked>> all;
    for (int i = 0; i < KernelQueue::kCalls; ++i) {
      all.push_back(Ask(i));
      AwaitCalls(i + 1);
    }
    return all;
  }

  prometheus::Registry registry_;
  KernelMetrics metrics_;
  Gate gate_{/*open=*/true};
  ScriptedKernel kernel_;
  KernelServices services_;
  const Matrix<double> landmarks_;
  std::shared_ptr<KernelQueue> queue_;
};

TEST_F(KernelQueueTest, WhatComesWhileCallsAreUnderWayGoesTogether) {
  std::vector<std::shared_ptr<Asked>> all = FillCalls();
  for (int i = 0; i < 20; ++i) all.push_back(Ask(0.1 * i));
  gate_.Open();
  for (const auto& asked : all) ExpectValues(*asked);
  // The first kCalls rows took one call each. The twenty rows that waited meanwhile share one more
  // call.
  EXPECT_EQ(kernel_.calls(), KernelQueue::kCalls + 1);
}

TEST_F(KernelQueueTest, NobodyGetsTheErrorOfAnothersExample) {
  EXPECT_THAT(ErrorOfBadAmongGood(grpc::StatusCode::INVALID_ARGUMENT),
              IsError(StatusCode::kFailedPrecondition, "KERNEL_SERVICE_FAILED", _,
                      HasSubstr("no such example")));
}

TEST_F(KernelQueueTest, NobodyFailsForAnExampleThatTheServiceDiesOf) {
  EXPECT_THAT(ErrorOfBadAmongGood(grpc::StatusCode::UNAVAILABLE),
              IsError(StatusCode::kUnavailable, "KERNEL_SERVICE_UNAVAILABLE"));
}

TEST_F(KernelQueueTest, RequestsThatWereGivenUpAreNotAskedFor) {
  std::vector<std::shared_ptr<Asked>> all = FillCalls();
  const auto cancelled = Ask(0.5, [](Asked& asked) { asked.cancelled = true; });
  const auto late = Ask(0.5, [](Asked& asked) { asked.deadline = absl::InfinitePast(); });
  gate_.Open();
  EXPECT_TRUE(absl::IsCancelled(cancelled->Wait().status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late->Wait().status()));
  for (const auto& asked : all) ExpectValues(*asked);
  EXPECT_EQ(kernel_.calls(), KernelQueue::kCalls);
}

// From its second call on, the queue sends only the digest of the columns. If the service was
// restarted or has forgotten the columns, the queue sends them again.
TEST_F(KernelQueueTest, ARoundTripEachAndOneMoreForAServiceThatHasForgotten) {
  ExpectValues(*Ask(1));
  EXPECT_EQ(kernel_.calls(), 1);
  ExpectValues(*Ask(2));
  EXPECT_EQ(kernel_.calls(), 2);
  kernel_.Forget();
  ExpectValues(*Ask(3));
  EXPECT_EQ(kernel_.calls(), 4);
  kernel_.Stop();
  kernel_.Start();
  ExpectValues(*Ask(4));
  EXPECT_EQ(kernel_.calls(), 6);
}

// In each round, several calls end at about the same time.
TEST_F(KernelQueueTest, AnswersArriveOnOneThreadThatIsNoCallers) {
  ExpectValues(*Ask(0));
  std::set<std::thread::id> threads;
  for (int round = 0; round < 32; ++round) {
    std::vector<std::shared_ptr<Asked>> all;
    for (int i = 0; i < KernelQueue::kCalls; ++i) all.push_back(Ask(i));
    for (const auto& asked : all) {
      ExpectValues(*asked);
      threads.insert(asked->thread);
    }
  }
  EXPECT_EQ(threads.size(), 1);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_F(KernelQueueTest, StopEndsWhatIsUnderWayAndWhatWaits) {
  std::vector<std::shared_ptr<Asked>> all = FillCalls();
  all.push_back(Ask(7));
  services_.Stop();
  for (const auto& asked : all) {
    EXPECT_EQ(ReasonOf(asked->Wait().status()), "SERVER_SHUTTING_DOWN");
  }
  EXPECT_EQ(ReasonOf(Ask(1)->Wait().status()), "SERVER_SHUTTING_DOWN");
}

}  // namespace
}  // namespace phimap::testing
