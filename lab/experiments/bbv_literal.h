// Sources of the tables of Balcan, Blum, Vempala 2006, their margin in φ-space, and the number of
// landmarks that the paper's Lemma 1 requires at that margin.
#ifndef PHIMAP_LAB_EXPERIMENTS_BBV_LITERAL_H_
#define PHIMAP_LAB_EXPERIMENTS_BBV_LITERAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/built_map.h"
#include "lab/examples.h"
#include "lab/experiment.h"
#include "lab/experiments/bbv_data.h"

namespace phimap::lab {

inline constexpr double kBbvError = 0.1;   // ε
inline constexpr double kBbvDelta = 0.05;  // δ
inline constexpr double kBbvMostAlpha = 0.2;
inline constexpr int64_t kBbvPopulation = 4000;

// A row of one of the tables.
struct BbvSource {
  std::string name;
  std::string kernel;
  int64_t d1 = 0;
  int64_t train_rows = 0;
  // Run i draws with first_seed + i; there are 10,000 before the next source's.
  int64_t first_seed = 0;
  // Surface of Table 1; else null.
  const BbvSurface* surface = nullptr;
  // All rows of a data set of Table 2.
  Examples examples;

  bool is_drawn() const { return surface != nullptr; }
  // Independent draws of the distribution: of real data the empirical one, with replacement.
  Examples Draw(int64_t count, uint64_t seed) const;
  // Examples that margins are measured on: points drawn anew, or all rows.
  Examples Population(uint64_t seed) const;
  // d1 unlabeled rows, then rows to learn from, then rows to test, as the tables have them.
  Examples DrawRun(uint64_t seed) const;
};

// The rows of both tables.
absl::StatusOr<std::vector<BbvSource>> BbvSources(const Options& options);

// The margins of several separators that were learnt from F(x)/√K(x, x), rising, one after the
// other. F(x) is F2, or the exact map of the kernel: as long as φ(x) is, or shorter.
absl::StatusOr<std::vector<std::vector<double>>> LearntMargins(const BuiltMap& map,
                                                               const Examples& examples,
                                                               const std::string& kernel);
// The largest margin at error α.
double BestMargin(const std::vector<std::vector<double>>& separators, double alpha);

// Requirements of Lemma 1.
struct BbvLiteral {
  double alpha = 0;
  double margin = 0;
  // nullopt: none, as the margin is too small.
  std::optional<int64_t> landmarks;
};

struct BbvMeasured {
  // At the error of the SVM on the rows it was learnt from; of Table 1 at 0.
  BbvLiteral own;
  // At the smallest error of kCertifiedAlphas, not under that, with which d is at most
  // kMaxLandmarks; nullopt: it would be over kBbvMostAlpha.
  std::optional<BbvLiteral> used;
};

absl::StatusOr<BbvMeasured> MeasureBbvMargin(const BbvSource& source, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_LITERAL_H_
