#include "server/evaluate/learning_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/learn/kernel_sgd.h"
#include "core/learn/kernel_svm.h"

namespace phimap {
namespace {

// More rows than these are refused when training begins.
constexpr double kMaxGram = 1.0 * kMaxGramRows * kMaxGramRows;
constexpr double kMaxPair = 1.0 * kMaxKernelSvmRows * (kMaxKernelSvmRows + 2);
// Scores of so many rows are there at one time, beside those of kernel blocks.
constexpr double kScoredRows = 1024;

double TrainingBytes(const LearnerSpec& learner, double n, double p, double d, double classes) {
  switch (learner.kind) {
    case LearnerKind::kPerceptron:
    case LearnerKind::kWinnow:
      return 8 * n;
    case LearnerKind::kLinearSvm:
      return 16 * n * (p + 2) + 32 * n;
    case LearnerKind::kWeakLearner:
      return 64 * n + 16 * static_cast<double>(learner.rounds) * p * classes;
    case LearnerKind::kOneParameter:
      return 16 * n * classes;
    case LearnerKind::kKernelSgd:
      switch (learner.strategy) {
        case SgdStrategy::kFeatures:
          return 16 * d * classes;
        case SgdStrategy::kStoredFeatures:
          return 8 * n * d + 16 * d * classes;
        case SgdStrategy::kKernel:
          return 16 * n * (classes + 1);
        case SgdStrategy::kGram:
          return 8 * std::min(n * n, kMaxGram) + 16 * n * classes;
      }
      break;
    case LearnerKind::kKernelSvm:
      return 17 * std::min(n * (n + 2), kMaxPair) + 8 * n * classes;  // 1 of them libsvm's cache
  }
  return 0;
}

}  // namespace

int64_t LearningBytes(const LearnerSpec& learner, const LearningSize& size) {
  const auto n = static_cast<double>(size.rows);
  const auto p = static_cast<double>(size.columns);
  const auto d = static_cast<double>(size.features);
  const auto classes = static_cast<double>(size.classes);
  double bytes = TrainingBytes(learner, n, p, d, classes);
  // The model, the confusion of classes, scores, the order and the margins of rows.
  bytes += 32 * p * classes + 8 * classes * classes + 8 * kScoredRows * classes + 80 * n;
  if (learner.is_kernel_learner()) bytes += 8 * (n * p + kScoredRows * (n + d));
  constexpr double kMost = 9e18;
  return bytes >= kMost ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(bytes);
}

}  // namespace phimap
