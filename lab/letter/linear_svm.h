// The learner of the demo: a linear SVM by liblinear.
#ifndef PHIMAP_LAB_LETTER_LINEAR_SVM_H_
#define PHIMAP_LAB_LETTER_LINEAR_SVM_H_

#include <vector>

#include "client/cpp/row_source.h"
#include "lab/letter/letter_data.h"

namespace phimap::lab {

// Trains one-against-rest L2-regularised squared-hinge SVMs on the rows of `split.train`, with a
// constant feature of 1, C = 1 and liblinear's own tolerance for the solver, 0.01, and returns the
// share of `split.test` that is classified right. The solver is the primal one (trust region
// Newton): it draws nothing at random, so the same input gives the same answer in any thread.
//
// Memory: 16 bytes a value of the training rows. Thread-safe.
double TestAccuracy(const client::RowBlock& features, const std::vector<double>& classes,
                    const Split& split);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_LETTER_LINEAR_SVM_H_
