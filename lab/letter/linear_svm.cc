#include "lab/letter/linear_svm.h"

#include <memory>

#include "core/learn/learner_spec.h"
#include "core/linalg/matrix.h"
#include "core/status/check.h"

namespace phimap::lab {
namespace {

Matrix<double> RowsOf(const client::RowBlock& features, const std::vector<int32_t>& rows) {
  Matrix<double> chosen =
      Matrix<double>::Uninit(static_cast<int64_t>(rows.size()), features.columns);
  for (size_t i = 0; i < rows.size(); ++i) {
    double* const to = chosen.row(static_cast<int64_t>(i));
    for (int32_t j = 0; j < features.columns; ++j) to[j] = features.At(rows[i], j);
  }
  return chosen;
}

}  // namespace

double TestAccuracy(const client::RowBlock& features, const std::vector<int32_t>& classes,
                    int32_t class_count, const Split& split) {
  const auto go_on = [](double) { return absl::OkStatus(); };
  const Matrix<double> train = RowsOf(features, split.train);
  std::vector<int32_t> labels;
  for (const int32_t row : split.train) labels.push_back(classes[row]);
  const auto spec = LearnerSpec::Parse("linear_svm(C=1, tolerance=0.01, bias=1)");
  PHIMAP_CHECK(spec.ok());
  const auto learner = MakeLearner(*spec);
  PHIMAP_CHECK(learner.ok());
  const auto model = (*learner)->Train({train.view(), labels, class_count}, /*seed=*/0, go_on);
  PHIMAP_CHECK(model.ok());
  const Matrix<double> test = RowsOf(features, split.test);
  const auto predicted = (*model)->Predict(test.view(), go_on);
  PHIMAP_CHECK(predicted.ok());
  int64_t right = 0;
  for (size_t i = 0; i < split.test.size(); ++i) {
    right += (*predicted)[i] == classes[split.test[i]];
  }
  return static_cast<double>(right) / static_cast<double>(split.test.size());
}

}  // namespace phimap::lab
