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

// Returns the number of landmarks by the binomial form of Lemma 1 at the margin √3/2·√(1 − α).
int64_t LandmarksFromD(double alpha);

// Runs of a learner on the features of a mapping.
struct SourceErrors {
  double alpha = 0;
  bool from_d = false;
  std::string mapping;
  std::string learner;
  std::vector<double> errors;
};

// Measurements besides the errors. Sets of rows are from the last run.
struct SourceGeometry {
  // The least margin, over all runs, of test words by the separator between the means of the
  // classes; by α.
  double least_margin[std::size(kAlphas)] = {1, 1};
  // With landmarks from elsewhere, the largest difference between two words of X' in one
  // coordinate.
  double largest_spread = 0;
  // F2 at α = 0 of a word outside of X', a word of class 1 and a word of class −1.
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
