// The memory that learning takes in addition to the rows, computed before it is allocated.
#ifndef PHIMAP_SERVER_EVALUATE_LEARNING_MEMORY_H_
#define PHIMAP_SERVER_EVALUATE_LEARNING_MEMORY_H_

#include <cstdint>

#include "core/learn/learner_spec.h"

namespace phimap {

struct LearningSize {
  int64_t rows = 0;
  // Number of columns of the rows that the learner takes.
  int64_t columns = 0;
  // Number of features that the learner itself computes from a row; 0 if it computes none.
  int64_t features = 0;
  int64_t classes = 0;
};

// Returns an upper bound in bytes, from the formulas in the learners' headers. Saturates at the
// maximum of int64_t.
int64_t LearningBytes(const LearnerSpec& learner, const LearningSize& size);

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATE_LEARNING_MEMORY_H_
