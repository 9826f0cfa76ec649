// Memory that learning takes beside the rows, computed before it is taken.
#ifndef PHIMAP_SERVER_EVALUATE_LEARNING_MEMORY_H_
#define PHIMAP_SERVER_EVALUATE_LEARNING_MEMORY_H_

#include <cstdint>

#include "core/learn/learner_spec.h"

namespace phimap {

struct LearningSize {
  int64_t rows = 0;
  // Columns of the rows that the learner takes.
  int64_t columns = 0;
  // Number of features that the learner makes of the columns, if it makes any.
  int64_t features = 0;
  int64_t classes = 0;
};

// At most so many bytes, as the learners' headers say; saturates.
int64_t LearningBytes(const LearnerSpec& learner, const LearningSize& size);

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATE_LEARNING_MEMORY_H_
