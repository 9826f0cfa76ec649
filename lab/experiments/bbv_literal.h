// The data sources of the tables of Balcan, Blum, Vempala 2006, their margins in φ-space, and the
// number of landmarks that the paper's Lemma 1 requires at that margin.
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

// The data source of one row of a table.
struct BbvSource {
  std::string name;
  std::string kernel;
  int64_t d1 = 0;
  int64_t train_rows = 0;
  // Run i draws with first_seed + i. Each source has 10,000 seeds.
  int64_t first_seed = 0;
  // Surface of Table 1; null for a data set of Table 2.
  const BbvSurface* surface = nullptr;
  // All rows of a data set of Table 2; empty for a surface.
  Examples examples;

  bool is_drawn() const { return surface != nullptr; }
  // Returns independent draws of the distribution. For real data it is the empirical distribution:
  // rows are drawn with replacement.
  Examples Draw(int64_t count, uint64_t seed) const;
  // Returns the examples on which margins are measured: newly drawn points, or all rows.
  Examples Population(uint64_t seed) const;
  // Returns d1 unlabeled rows, then training rows, then test rows, with the sizes of the tables.
  Examples DrawRun(uint64_t seed) const;
};

// Returns the sources of all rows of both tables.
absl::StatusOr<std::vector<BbvSource>> BbvSources(const Options& options);

// Returns, for several separators learnt from F(x)/√K(x, x), the margins in ascending order. F is
// F2 or the exact map of the kernel, so F(x) is at most as long as φ(x).
absl::StatusOr<std::vector<std::vector<double>>> LearntMargins(const BuiltMap& map,
                                                               const Examples& examples,
                                                               const std::string& kernel);
// Returns the largest margin at error `alpha` of any of the separators.
double BestMargin(const std::vector<std::vector<double>>& separators, double alpha);

// The largest margin of any separator at error `alpha`, and the number of landmarks that Lemma 1
// requires at this margin.
struct BbvLiteral {
  double alpha = 0;
  double margin = 0;
  // nullopt if the margin is too small for any number.
  std::optional<int64_t> landmarks;
};

struct BbvMeasured {
  // Lemma 1 at the error of the SVM on its own training rows; for Table 1, at error 0.
  BbvLiteral own;
  // Lemma 1 at the smallest error for which d is at most kMaxLandmarks, among own.alpha and the
  // larger ones of kCertifiedAlphas; nullopt if that error would exceed kBbvMostAlpha.
  std::optional<BbvLiteral> used;
};

absl::StatusOr<BbvMeasured> MeasureBbvMargin(const BbvSource& source, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_LITERAL_H_
