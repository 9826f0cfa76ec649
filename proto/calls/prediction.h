// What a prediction is asked for, and its answer, from and to messages.
#ifndef PHIMAP_PROTO_CALLS_PREDICTION_H_
#define PHIMAP_PROTO_CALLS_PREDICTION_H_

#include "core/head/head.h"
#include "core/head/head_answers.h"
#include "phimap/v1/predict_service.pb.h"

namespace phimap {

WantedAnswers WantedBy(const v1::PredictRequest& request);

// How an answer names classes: not at all, all of them once, or in place of the index of each row.
enum class ClassNames { kNone, kOnce, kOfRows };

// Fills in all but the version.
void PredictionToProto(const Head& head, const WantedAnswers& wanted, const Answers& answers,
                       ClassNames names, v1::PredictResponse* out);

}  // namespace phimap

#endif  // PHIMAP_PROTO_CALLS_PREDICTION_H_
