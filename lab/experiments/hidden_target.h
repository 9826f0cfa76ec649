// The construction of BBV's Theorem 4: a kernel in which the target function is hidden.
#ifndef PHIMAP_LAB_EXPERIMENTS_HIDDEN_TARGET_H_
#define PHIMAP_LAB_EXPERIMENTS_HIDDEN_TARGET_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "lab/built_map.h"
#include "lab/examples.h"

namespace phimap::lab {

// A word of X = {0, 1}^30.
struct Word {
  uint32_t bits = 0;
  // Class of the word: on X', 1 or 0 (0 is the paper's −1); outside of X', −1.
  int32_t label = -1;
};

// X' is a random subset of 2^15 words, D is the uniform distribution on X', and c(x) is 1 or −1 for
// each word x of X', by a fair coin. The kernel is K(x, y) = φ(x)·φ(y) with
//
//   φ(x) = (1, 0) outside of X', (−1/2, √3/2) on X' where c(x) = 1, (−1/2, −√3/2) where it is −1
//
// so K is 1 between two words outside of X' and between two words of one class, and −1/2 otherwise.
// For positive α, both values are multiplied by 1 − α, but K(x, x) stays 1. This gives every word a
// dimension of its own, so K is positive definite.
class HiddenTarget {
 public:
  HiddenTarget(uint64_t seed, double alpha);

  // Returns K(x, y), the black box of the theorem.
  double Kernel(const Word& x, const Word& y) const;
  // Returns `count` independent words drawn from D.
  std::vector<Word> Draw(int64_t count, uint64_t seed) const;
  // Returns independent words, uniform on X, drawn without any knowledge of X' or D.
  std::vector<Word> DrawElsewhere(int64_t count, uint64_t seed) const;
  // Returns the kernel values of all x with all z.
  Matrix<double> Block(const std::vector<Word>& x, const std::vector<Word>& z) const;

 private:
  double alpha_;
  std::unordered_map<uint32_t, int32_t> classes_;
  std::vector<Word> words_;
};

// A map that was built from the Gram matrix of a stream of words. The build sees nothing else of
// the words.
class MapOfWords {
 public:
  // `name` is f1 or f2. The stream must be longer than `landmarks`, because part of it is held out.
  static absl::StatusOr<MapOfWords> Build(const HiddenTarget& target, const std::string& name,
                                          int64_t landmarks, std::vector<Word> stream,
                                          uint64_t seed);

  // Returns the features of the words, computed from the kernel values with the landmarks. Words
  // outside of X' get class 0.
  absl::StatusOr<Examples> Features(const HiddenTarget& target,
                                    const std::vector<Word>& words) const;
  // Returns the number of landmarks that are words of X'.
  int64_t landmarks_inside() const;

 private:
  MapOfWords(BuiltMap map, std::vector<Word> landmarks)
      : map_(std::move(map)), landmarks_(std::move(landmarks)) {}

  BuiltMap map_;
  std::vector<Word> landmarks_;
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_HIDDEN_TARGET_H_
