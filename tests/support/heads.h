// Makes heads of random numbers.
#ifndef PHIMAP_TESTS_SUPPORT_HEADS_H_
#define PHIMAP_TESTS_SUPPORT_HEADS_H_

#include <cstdint>
#include <string>

#include "core/head/head.h"

namespace phimap::testing {

struct HeadShape {
  int64_t features = 0;
  // Number of classes; 0 for a head for numbers.
  int64_t classes = 3;
  bool folded = true;
  // Rows whose scores calibrate sets or intervals.
  int64_t calibration_rows = 20;
  // Whether a head for numbers has a variance.
  bool variance = false;
  uint64_t seed = 1;
};

// Returns a valid head. Weights and intercepts are uniform in (-1, 1). The classes are named "class
// 0", "class 1" and so on, and the link is the one for so many classes.
Head MakeHead(const HeadShape& shape);

// Returns the artifact with the head, which is made one of this artifact's features. Ends the
// program on an error.
std::string MustWithHead(const std::string& artifact, Head head);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_HEADS_H_
