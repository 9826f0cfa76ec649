// The answers of Transform and TransformStream, which have the same fields. An answer is laid out
// before the features are computed, and then written in place.
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
  // Lays out an answer of `rows` rows. `names_version` says whether the answer names the version:
  // all do, except the later answers of a stream. `residual` is the version's if the answer has
  // residuals, or null.
  void Plan(const VersionHandle& version, int64_t rows, bool names_version,
            const Residual* residual);

  PlannedAnswer& message() { return message_; }
  // Destination of the features. REQUIRES: the message is allocated.
  char* Features() { return message_.field(features_); }
  // Writes the other parts of the answer. Called after the features were written. `seen` are the
  // rows that the engine got.
  void Complete(const ExamplesView& seen);

 private:
  PlannedAnswer message_;
  // Places of the fields in message_; -1 if there are no residuals.
  int features_ = -1;
  int residuals_ = -1;
  int allowances_ = -1;
  const Residual* residual_ = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_TRANSFORM_ANSWER_H_
