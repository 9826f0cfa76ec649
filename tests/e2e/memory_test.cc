// Tests that streaming many rows takes no more memory than streaming a few.
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

int64_t PeakAfterBuild(int64_t rows) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  GeneratedRows source(rows, 16, 1);
  const auto version = server.Connect()->Build({.name = "stream",
                                                .spec = "f2(landmarks=100)",
                                                .kernel = "rbf(gamma=scale)",
                                                .standardize = true},
                                               source);
  EXPECT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version.ok() ? version->certificate().stream_rows() : -1, rows);
  return server.PeakMemoryBytes();
}

TEST(MemoryTest, TwoMillionRowsRaiseThePeakByUnder64MiBOverTwentyThousand) {
  const int64_t few = PeakAfterBuild(20'000);
  const int64_t many = PeakAfterBuild(2'000'000);
  std::cout << "peak " << few / 1048576.0 << " MiB for 20,000 rows, " << many / 1048576.0
            << " MiB for 2,000,000\n";
  EXPECT_LT(many - few, 64 << 20);
}

// Generated rows with two different labels.
class LabeledGeneratedRows : public client::LabeledRowSource {
 public:
  explicit LabeledGeneratedRows(int64_t rows) : rows_(rows, 16, 1) {}
  int32_t columns() const override { return rows_.columns(); }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override {
    absl::StatusOr<client::ExampleBlock> block = rows_.Next(limits);
    const int64_t count = block.ok() ? block->rows() : 0;
    for (int64_t i = 0; i < count; ++i) labels_.push_back(i % 2 == 0 ? "even" : "odd");
    return block;
  }
  std::vector<std::string> TakeLabels() override { return std::exchange(labels_, {}); }

 private:
  GeneratedRows rows_;
  std::vector<std::string> labels_;
};

TEST(MemoryTest, ARefusedEvaluationGivesItsMemoryBack) {
  constexpr int64_t kLimit = int64_t{512} << 20;
  TemporaryFolder folder;
  ServerProcess server(folder.path(), {absl::StrCat("--build_memory_bytes=", kLimit)});
  const auto client = server.Connect();
  GeneratedRows source(1000, 16, 1);
  ASSERT_TRUE(
      client
          ->Build({.name = "wide", .spec = "f1(landmarks=300)", .kernel = "rbf(gamma=scale)"},
                  source)
          .ok());
  const int64_t before = server.MemoryBytes();
  // A row has 300 features of 8 bytes each, so these rows take kLimit bytes. That is twice the
  // limit of evaluations.
  LabeledGeneratedRows rows(kLimit / (8 * 300));
  const auto refused = client->Evaluate({.reference = "wide"}, rows);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat(kLimit / 2, " that evaluations may take")));
  const int64_t peak = server.PeakMemoryBytes();
  const int64_t after = server.MemoryBytes();
  std::cout << "before " << before / 1048576.0 << " MiB, at most " << peak / 1048576.0
            << " MiB, after " << after / 1048576.0 << " MiB\n";
  // The server refuses before all rows are in memory, because it counts each row twice: training
  // needs a second copy.
  EXPECT_LT(peak - before, kLimit * 3 / 4);
  EXPECT_LT(after - before, 64 << 20);
}

}  // namespace
}  // namespace phimap::e2e
