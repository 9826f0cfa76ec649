// The answers of Transform and of TransformStream, which have the same fields: laid out before the
// features are there, and written in place.
#ifndef PHIMAP_SERVER_TRANSFORM_TRANSFORM_ANSWER_H_
#define PHIMAP_SERVER_TRANSFORM_TRANSFORM_ANSWER_H_

#include <cstdint>

#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "server/registry/version_handle.h"
#include "server/serving/planned_answer.h"

namespace phimap {

// Not thread-safe.
class TransformAnswer {
 public:
  // For `rows` rows; `names_version`: whether the answer names the version, as all do except the
  // later ones of a stream. `residual`: the version's, if the answer has residuals; null otherwise.
  void Plan(const VersionHandle& version, int64_t rows, bool names_version,
            const Residual* residual);

  PlannedAnswer& message() { return message_; }
  // Destination of the features. REQUIRES: the message is allocated.
  char* Features() { return message_.field(features_); }
  // Writes the other parts of the answer for the engine's rows, after the features.
  void Complete(const ExamplesView& seen);

 private:
  PlannedAnswer message_;
  // Places in it; -1: no residuals.
  int features_ = -1;
  int residuals_ = -1;
  const Residual* residual_ = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_TRANSFORM_ANSWER_H_
