// Labeled rows to test learners with: real ones of lab/data, and made ones.
#ifndef PHIMAP_TESTS_CORE_LEARN_LABELED_DATA_H_
#define PHIMAP_TESTS_CORE_LEARN_LABELED_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/learn/learner.h"
#include "core/learn/make_learner.h"
#include "core/linalg/matrix.h"

namespace phimap::testing {

struct LabeledRows {
  Matrix<double> rows;
  std::vector<int32_t> labels;
  int32_t classes = 0;

  TrainingSet set() const {
    return {.rows = rows.view(), .labels = labels, .class_count = classes};
  }
};

// lab/data/NAME, as it is or standardised; classes are numbered in the order of their names.
LabeledRows RawData(const std::string& name);
LabeledRows RealData(const std::string& name);

// The given rows.
LabeledRows Subset(const LabeledRows& from, const std::vector<int64_t>& rows);
// Every `step`-th row from `first`, at most `most`.
LabeledRows Every(const LabeledRows& from, int64_t first, int64_t step, int64_t most = 1 << 30);

// N(0, 1) rows whose class is the largest of random linear scores, a tenth of them relabeled.
LabeledRows NoisyRows(int64_t n, int64_t columns, int32_t classes, uint64_t seed);

// The model of a learner in its text form. A failure fails the test and gives nullptr.
std::unique_ptr<const Model> MustTrain(const std::string& learner, const LabeledRows& examples,
                                       uint64_t seed, const KernelInput& input = {});

Matrix<double> MustScore(const Model& model, const Matrix<double>& rows);
// Share of the rows that get another class than theirs.
double ErrorOn(const Model& model, const LabeledRows& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_LEARN_LABELED_DATA_H_
