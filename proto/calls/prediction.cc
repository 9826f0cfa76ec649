#include "proto/calls/prediction.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace phimap {
namespace {

void FillMatrix(const Matrix<double>& matrix, v1::DenseRows* out) {
  out->set_rows(static_cast<int>(matrix.rows()));
  out->set_columns(static_cast<int>(matrix.cols()));
  out->set_float64_le(matrix.data(), static_cast<size_t>(matrix.size()) * sizeof(double));
}

}  // namespace

WantedAnswers WantedBy(const v1::PredictRequest& request) {
  return {.scores = request.scores(),
          .probabilities = request.probabilities(),
          .confidence = request.confidence(),
          .deviations = request.deviations()};
}

void PredictionToProto(const Head& head, const WantedAnswers& wanted, const Answers& answers,
                       ClassNames names, v1::PredictResponse* out) {
  if (head.task == HeadTask::kNumbers) {
    out->mutable_values()->Add(answers.values.begin(), answers.values.end());
    if (wanted.confidence > 0) {
      for (const double value : answers.values) {
        out->add_interval_lows(value - answers.interval_half_width);
        out->add_interval_highs(value + answers.interval_half_width);
      }
    }
  } else if (names == ClassNames::kOfRows) {
    for (const int32_t label : answers.labels) out->add_label_names(head.classes[label]);
  } else {
    out->mutable_labels()->Add(answers.labels.begin(), answers.labels.end());
  }
  if (names == ClassNames::kOnce) {
    for (const std::string& name : head.classes) out->add_class_names(name);
  }
  int64_t begin = 0;
  for (const int64_t end : answers.set_ends) {
    out->add_sets()->mutable_classes()->Add(answers.set_classes.begin() + begin,
                                            answers.set_classes.begin() + end);
    begin = end;
  }
  if (wanted.scores) FillMatrix(answers.scores, out->mutable_scores());
  if (wanted.probabilities) FillMatrix(answers.probabilities, out->mutable_probabilities());
  out->mutable_deviations()->Add(answers.deviations.begin(), answers.deviations.end());
}

}  // namespace phimap
