// The learner of the demo: a linear SVM by liblinear.
#ifndef PHIMAP_LAB_LETTER_LINEAR_SVM_H_
#define PHIMAP_LAB_LETTER_LINEAR_SVM_H_

#include <cstdint>
#include <vector>

#include "client/cpp/row_source.h"
#include "lab/letter/letter_data.h"

namespace phimap::lab {

// Trains one-against-rest L2-regularised squared-hinge SVMs on the rows of `split.train`, with a
// constant feature of 1, C = 1 and liblinear's default tolerance for the solver, 0.01
// (core/learn/linear_svm.cc). Returns the share of `split.test` that is classified correctly. The
// same input gives the same result on any thread.
//
// Needs 16 bytes of memory per value of the training rows. Thread-safe.
double TestAccuracy(const client::RowBlock& features, const std::vector<int32_t>& classes,
                    int32_t class_count, const Split& split);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_LETTER_LINEAR_SVM_H_
