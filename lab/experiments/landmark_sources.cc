#include "lab/experiments/landmark_sources.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/learn/margin.h"
#include "core/status/status_macros.h"
#include "core/theory/landmark_bounds.h"
#include "lab/experiments/hidden_target.h"
#include "lab/learning.h"

namespace phimap::lab {
namespace {

constexpr const char* kLearners[] = {"linear_svm()", "perceptron(average=true)", "winnow()",
                                     "weak_learner(rounds=5, draws=50, bias=1)"};
constexpr const char* kFamilies[] = {"f1", "f2"};
// Number of rows of a stream beyond the landmarks.
constexpr int64_t kSpareWords = 60;
// Number of seeds reserved per run, for the target, the landmarks, and the training and test words.
constexpr int64_t kSeedsOfRun = 8;

// Returns the least margin of a test word in φ-space, where K(x, x) = 1. The separator is the
// difference of the means of the two training classes.
double LeastMargin(const Examples& train, const Examples& test) {
  const auto columns = static_cast<size_t>(train.rows.cols());
  const auto in_class_1 =
      static_cast<double>(std::count(train.labels.begin(), train.labels.end(), 1));
  const double in_class_0 = static_cast<double>(train.labels.size()) - in_class_1;
  std::vector<double> w(columns, 0.0);
  for (size_t i = 0; i < train.labels.size(); ++i) {
    const double weight = train.labels[i] == 1 ? 1 / in_class_1 : -1 / in_class_0;
    for (size_t k = 0; k < columns; ++k) w[k] += weight * train.rows(i, k);
  }
  double square = 0;
  for (const double value : w) square += value * value;
  const Separators separators{.norms = {std::sqrt(square)}, .intercepts = {}};
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < test.labels.size(); ++i) {
    double score = 0;
    for (size_t k = 0; k < columns; ++k) score += w[k] * test.rows(i, k);
    const double scores[] = {score};
    least = std::min(least, NormalisedMargin(separators, scores, 1, test.labels[i]));
  }
  return least;
}

double Spread(const Examples& examples) {
  double spread = 0;
  for (int64_t i = 1; i < examples.rows.rows(); ++i) {
    for (int64_t k = 0; k < examples.rows.cols(); ++k) {
      spread = std::max(spread, std::abs(examples.rows(i, k) - examples.rows(0, k)));
    }
  }
  return spread;
}

// Returns a word outside of X', a word of class 1 and a word of class −1.
std::vector<Word> Representatives(const HiddenTarget& target, uint64_t seed) {
  std::vector<Word> three(3);
  for (const Word& word : target.DrawElsewhere(20, seed)) {
    if (word.label < 0) three[0] = word;
  }
  for (const Word& word : target.Draw(100, seed)) three[word.label == 1 ? 1 : 2] = word;
  return three;
}

// Trains each learner on these features and adds its error.
absl::Status AddErrors(const SourceErrors& which, const Examples& train, const Examples& test,
                       uint64_t seed, LandmarkSources& study) {
  for (SourceErrors& of : study.errors) {
    if (of.alpha != which.alpha || of.from_d != which.from_d || of.mapping != which.mapping) {
      continue;
    }
    PHIMAP_ASSIGN_OR_RETURN(const double error, TestError(of.learner, train, test, seed));
    of.errors.push_back(error);
  }
  return absl::OkStatus();
}

// Builds one map, runs its learners, and records the geometry of the map.
absl::Status RunMap(const HiddenTarget& target, size_t alpha, bool from_d, const char* mapping,
                    uint64_t seed, LandmarkSources& study) {
  const int64_t landmarks = from_d ? LandmarksFromD(kAlphas[alpha]) : kLandmarksElsewhere;
  const int64_t stream = landmarks + kSpareWords;
  PHIMAP_ASSIGN_OR_RETURN(
      const MapOfWords map,
      MapOfWords::Build(
          target, mapping, landmarks,
          from_d ? target.Draw(stream, seed + 1) : target.DrawElsewhere(stream, seed + 2), seed));
  PHIMAP_ASSIGN_OR_RETURN(const Examples train,
                          map.Features(target, target.Draw(study.words, seed + 3)));
  PHIMAP_ASSIGN_OR_RETURN(const Examples test,
                          map.Features(target, target.Draw(study.words, seed + 4)));
  const SourceErrors which{
      .alpha = kAlphas[alpha], .from_d = from_d, .mapping = mapping, .learner = {}, .errors = {}};
  PHIMAP_RETURN_IF_ERROR(AddErrors(which, train, test, seed, study));
  SourceGeometry& geometry = study.geometry;
  if (!from_d) {
    geometry.largest_spread = std::max(geometry.largest_spread, Spread(test));
    geometry.landmarks_inside += map.landmarks_inside();
  }
  if (std::string(mapping) != "f2") return absl::OkStatus();
  if (from_d) {
    geometry.least_margin[alpha] = std::min(geometry.least_margin[alpha], LeastMargin(train, test));
  }
  if (alpha > 0) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(Examples three, map.Features(target, Representatives(target, seed + 5)));
  (from_d ? geometry.from_d : geometry.from_elsewhere) = std::move(three.rows);
  return absl::OkStatus();
}

}  // namespace

int64_t LandmarksFromD(double alpha) {
  return BinomialLandmarks(std::sqrt(0.75 * (1 - alpha)), kHiddenError, kHiddenDelta).value();
}

absl::StatusOr<LandmarkSources> StudyLandmarkSources(const Options& options) {
  LandmarkSources study{
      .runs = options.Runs(25, 4), .words = options.Runs(2000, 1000), .errors = {}, .geometry = {}};
  for (const double alpha : kAlphas) {
    for (const bool from_d : {true, false}) {
      for (const char* mapping : kFamilies) {
        for (const char* learner : kLearners) {
          study.errors.push_back({.alpha = alpha,
                                  .from_d = from_d,
                                  .mapping = mapping,
                                  .learner = learner,
                                  .errors = {}});
        }
      }
    }
  }
  for (int64_t run = 0; run < study.runs; ++run) {
    for (size_t alpha = 0; alpha < std::size(kAlphas); ++alpha) {
      const uint64_t seed = options.Seed(run * kSeedsOfRun);
      const HiddenTarget target(seed, kAlphas[alpha]);
      for (const bool from_d : {true, false}) {
        for (const char* mapping : kFamilies) {
          PHIMAP_RETURN_IF_ERROR(RunMap(target, alpha, from_d, mapping, seed, study));
        }
      }
    }
  }
  return study;
}

}  // namespace phimap::lab
