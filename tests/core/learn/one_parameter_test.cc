// Compares the one-parameter learner with liblinear's program. liblinear is run on differences of
// blocks, because these are the rows that the learner learns from.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/learn/svm_tool.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Maps each row x to L blocks, one for each class: the row (R_1 x, …, R_L x). R_y is the random
// matrix of class y. It has `length` rows, and its entries are independent N(0, 1/length).
LabeledRows InBlocks(const LabeledRows& rows, int64_t length) {
  LabeledRows blocks{.rows = Matrix<double>(rows.rows.rows(), rows.classes * length),
                     .labels = rows.labels,
                     .classes = rows.classes};
  const RandomStream stream(17, StreamId::kProjection);
  for (int64_t i = 0; i < rows.rows.rows(); ++i) {
    for (int64_t j = 0; j < blocks.rows.cols(); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < rows.rows.cols(); ++k) {
        sum += stream.Normal(static_cast<uint64_t>(j * rows.rows.cols() + k)) * rows.rows(i, k);
      }
      blocks.rows(i, j) = sum / std::sqrt(static_cast<double>(length));
    }
  }
  return blocks;
}

// Returns the differences of blocks as rows of two classes. liblinear needs two classes, so every
// other difference has its sign changed. This does not change the problem: d in class 1 and −d in
// class 0 have the same loss.
LabeledRows Differences(const LabeledRows& blocks, int64_t length) {
  LabeledRows out{.rows = Matrix<double>(blocks.rows.rows() * (blocks.classes - 1), length),
                  .labels = {},
                  .classes = 2};
  int64_t next = 0;
  for (int64_t i = 0; i < blocks.rows.rows(); ++i) {
    for (int32_t y = 0; y < blocks.classes; ++y) {
      if (y == blocks.labels[i]) continue;
      const double sign = next % 2 == 0 ? 1 : -1;
      for (int64_t k = 0; k < length; ++k) {
        out.rows(next, k) =
            sign * (blocks.rows(i, blocks.labels[i] * length + k) - blocks.rows(i, y * length + k));
      }
      out.labels.push_back(sign > 0 ? 1 : 0);
      ++next;
    }
  }
  return out;
}

TEST(OneParameterTest, IsLiblinearsSupportVectorMachineOfTheDifferences) {
  constexpr int64_t kLength = 20;
  // The rows of letter.csv that belong to the first four classes.
  const LabeledRows all = Every(RealData("letter.csv"), 0, 4);
  std::vector<int64_t> few;
  for (int64_t i = 0; i < all.rows.rows(); ++i) {
    if (all.labels[i] < 4) few.push_back(i);
  }
  LabeledRows rows = Subset(all, few);
  rows.classes = 4;
  const LabeledRows blocks = InBlocks(rows, kLength);
  const std::unique_ptr<const Model> model =
      MustTrain("one_parameter(C=0.1, tolerance=1e-08, epochs=100000)", blocks, 1);

  const ScratchFolder folder;
  WriteSvmFile(Differences(blocks, kLength), folder.File("rows"));
  MustRun(absl::StrCat(PHIMAP_LIBLINEAR_TRAIN, " -s 2 -c 0.1 -e 1e-9 ", folder.File("rows"), " ",
                       folder.File("model")));
  const std::vector<std::string> lines = LinesOf(folder.File("model"));
  ASSERT_GE(lines.size(), static_cast<size_t>(kLength));
  const double sign = lines[2] == "label 1 -1" ? 1 : -1;
  // liblinear stops when a step reduces the objective by less than 1e-12 of its value, which is
  // under 0.1·2,400 here. Let v be its solution and v* the exact one. Then ½‖v − v*‖² is at most
  // the possible further reduction.
  for (int64_t k = 0; k < kLength; ++k) {
    double expected = 0;
    ASSERT_TRUE(absl::SimpleAtod(lines[lines.size() - kLength + k], &expected));
    EXPECT_NEAR(model->shared_weights()[k], sign * expected, 5e-5) << k;
  }
  EXPECT_LT(ErrorOn(*model, blocks), 0.3);
  // Theorem 9: the score of a class is the inner product of v and the block of the class.
  const Matrix<double> scores = MustScore(*model, blocks.rows);
  for (int32_t y = 0; y < 4; ++y) {
    double expected = 0;
    for (int64_t k = 0; k < kLength; ++k) {
      expected += model->shared_weights()[k] * blocks.rows(3, y * kLength + k);
    }
    EXPECT_NEAR(scores(3, y), expected, 1e-9);
  }
}

// The learner uses a single vector of n numbers for all classes. On the features of the mapping,
// its error falls as n grows, until it is below the error of 26 separators.
TEST(OneParameterTest, OnTheFeaturesOfTheMappingMoreDimensionsLoseLess) {
  const LabeledRows all = RealData("letter.csv");
  const LabeledRows train = Every(all, 0, 20);
  const LabeledRows test = Every(all, 1, 20);
  const double separators = ErrorOn(*MustTrain("linear_svm(bias=0)", train, 1), test);
  double before = 25.0 / 26;  // the error of guessing
  for (const int dimensions : {50, 200, 800}) {
    const BuiltVersion version = MustBuild(
        SpecOf(absl::StrCat("multiclass(classes=26, dimensions=", dimensions, ")"), "linear()"),
        train.rows);
    const auto mapped = [&](const LabeledRows& rows) {
      return LabeledRows{
          .rows = FeaturesFrom(version, rows.rows), .labels = rows.labels, .classes = rows.classes};
    };
    const double error =
        ErrorOn(*MustTrain("one_parameter(epochs=20)", mapped(train), 1), mapped(test));
    EXPECT_LT(error, before) << dimensions;
    before = error;
  }
  EXPECT_LT(before, separators);
}

TEST(OneParameterTest, ColumnsThatAreNotABlockAClassAreRefused) {
  const LabeledRows rows = NoisyRows(20, 7, 3, 1);
  const absl::Status status = MustMake("one_parameter()")->Train(rows.set(), 1, NeverStop).status();
  EXPECT_EQ(ReasonOf(status), "COLUMNS_MISMATCH");
  EXPECT_THAT(std::string(status.message()), HasSubstr("multiclass(classes=3"));
}

}  // namespace
}  // namespace phimap::testing
