#include "server/evaluate/learning_memory.h"

#include <limits>

namespace phimap {
namespace {

// Number of rows whose scores are in memory at one time, besides the scores in kernel blocks.
constexpr double kScoredRows = 1024;

}  // namespace

int64_t LearningBytes(const LearnerSpec& learner, const LearningSize& size) {
  const auto n = static_cast<double>(size.rows);
  const auto p = static_cast<double>(size.columns);
  const auto d = static_cast<double>(size.features);
  const auto classes = static_cast<double>(size.classes);
  double bytes = learner.type->training_bytes(
      learner.values, {.rows = n, .columns = p, .features = d, .classes = classes});
  // The model, the confusion matrix, the scores, and the order and margins of the rows.
  bytes += 32 * p * classes + 8 * classes * classes + 8 * kScoredRows * classes + 80 * n;
  if (learner.is_kernel_learner()) bytes += 8 * (n * p + kScoredRows * (n + d));
  constexpr double kMost = 9e18;
  return bytes >= kMost ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(bytes);
}

}  // namespace phimap
