// Compares learners on features with landmarks drawn from D, and with landmarks drawn without
// knowledge of D.
#ifndef PHIMAP_LAB_EXPERIMENTS_LANDMARK_SOURCES_H_
#define PHIMAP_LAB_EXPERIMENTS_LANDMARK_SOURCES_H_

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "lab/experiment.h"

namespace phimap::lab {

// The error and confidence for which Theorem 1 is applied.
inline constexpr double kHiddenError = 0.05;
inline constexpr double kHiddenDelta = 0.001;
// HiddenTarget's α.
inline constexpr double kAlphas[] = {0, 0.1};
inline constexpr int64_t kLandmarksElsewhere = 200;

// Returns the number of landmarks that the binomial form of Lemma 1 requires at the margin √3/2·√(1
// − α).
int64_t LandmarksFromD(double alpha);

// Errors of a learner on the features of a mapping, over all runs.
struct SourceErrors {
  double alpha = 0;
  bool from_d = false;
  std::string mapping;
  std::string learner;
  std::vector<double> errors;
};

// Measurements besides the errors. The matrices are those of the last run.
struct SourceGeometry {
  // The least margin of a test word over all runs, for each α. The separator is the difference of
  // the means of the two classes.
  double least_margin[std::size(kAlphas)] = {1, 1};
  // The largest difference between two words of X' in one feature, if the landmarks are drawn
  // without knowledge of D.
  double largest_spread = 0;
  // Features by F2 at α = 0 of three words: one outside of X', one of class 1 and one of class −1.
  Matrix<double> from_d;
  Matrix<double> from_elsewhere;
  int64_t landmarks_inside = 0;
};

struct LandmarkSources {
  int64_t runs = 0;
  int64_t words = 0;
  std::vector<SourceErrors> errors;
  SourceGeometry geometry;
};

// Runs all combinations of 2 α, 2 sources of landmarks, F1 and F2, and 4 learners. Run i uses
// Seed(8i) and the five seeds after it.
absl::StatusOr<LandmarkSources> StudyLandmarkSources(const Options& options);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_LANDMARK_SOURCES_H_
