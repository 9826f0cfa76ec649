// Labeled rows for testing learners: real data from lab/data, and generated data.
#ifndef PHIMAP_TESTS_CORE_LEARN_LABELED_DATA_H_
#define PHIMAP_TESTS_CORE_LEARN_LABELED_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/learn/learner.h"
#include "core/learn/learner_spec.h"
#include "core/linalg/matrix.h"

namespace phimap::testing {

struct LabeledRows {
  Matrix<double> rows;
  std::vector<int32_t> labels;
  int32_t classes = 0;
  // In place of labels, for learners of numbers.
  std::vector<double> targets = {};

  TrainingSet set() const {
    return {.rows = rows.view(), .labels = labels, .class_count = classes, .targets = targets};
  }
};

// Returns the rows of lab/data/NAME: RawData as they are, RealData standardised. Classes are
// numbered in the order of their names.
LabeledRows RawData(const std::string& name);
LabeledRows RealData(const std::string& name);

// Returns the rows of `from` with the row numbers `rows`.
LabeledRows Subset(const LabeledRows& from, const std::vector<int64_t>& rows);
// Returns every `step`-th row from row `first` on, at most `most` rows.
LabeledRows Every(const LabeledRows& from, int64_t first, int64_t step, int64_t most = 1 << 30);

// Returns N(0, 1) rows. The class of a row is the one with the largest of random linear scores,
// except that a tenth of the rows are relabeled.
LabeledRows NoisyRows(int64_t n, int64_t columns, int32_t classes, uint64_t seed);

// Returns N(0, 1) rows with numbers: 5 plus a random linear function of variance 4, plus N(0, 1).
LabeledRows NoisyNumbers(int64_t n, int64_t columns, uint64_t seed);
// Returns `columns` >= 5 independent uniform numbers in [0, 1] and Friedman's first function of the
// first five, 10 sin(π·x₁x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅, plus N(0, 1) (Friedman 1991).
LabeledRows FriedmanRows(int64_t n, int64_t columns, uint64_t seed);

// Returns random rows of length 1 in two classes, which alternate. Their first columns are
// ±`margin`, so a separator through the origin has this margin.
LabeledRows RowsWithMargin(int64_t n, int64_t columns, double margin, uint64_t seed);

// Makes the learner that the text `learner` describes. An error fails the test and gives nullptr.
std::unique_ptr<const Learner> MustMake(const std::string& learner, const KernelInput& input = {});
// Trains the learner that the text `learner` describes. An error fails the test and gives nullptr.
std::unique_ptr<const Model> MustTrain(const std::string& learner, const LabeledRows& examples,
                                       uint64_t seed, const KernelInput& input = {});

Matrix<double> MustScore(const Model& model, const Matrix<double>& rows);
// The share of rows for which the model predicts a class other than their label.
double ErrorOn(const Model& model, const LabeledRows& rows);
// The root of the mean squared error of a model of numbers.
double RootMeanSquaredError(const Model& model, const LabeledRows& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_LEARN_LABELED_DATA_H_
