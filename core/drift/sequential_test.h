// Tests whether served rows still have the distribution of the held-out rows, with an answer that
// is valid at every look.
//
// For each score, a bag B begins as the histogram of n held-out rows. A new row whose score falls
// into bin b gets
//
//     p = (#{B above b} + θ·(1 + #{B in b})) / (|B| + 1),
//
// with θ uniform in (0, 1) from a seeded stream, and then joins the bag. If the held-out rows and
// the new rows are exchangeable, the numbers p of one score are independent and uniform. (Vovk,
// Nouretdinov, Gammerman 2003.) Bets multiply evidence against that:
//
//     R^ε ← (1 + R^ε)·(1 + ε·(p − ½)),   ε ∈ {±.1, ±.25, ±.5, ±1},
//
// and R is the mean of the R^ε (Shiryaev–Roberts). Large R says that the score has moved. The same
// with q = 2·|p − ½|, which is uniform too, shows a change of its spread. Bag and R restart every
// restart_rows rows, so that a change is compared with the held-out rows and not with itself.
//
// Why it is valid. Without drift the mean of R after t rows is t, and R is a nonnegative
// submartingale, so within one restart of m rows R reaches c with a probability of at most m/c
// (Doob). The sum over the restarts within T rows and over the K numbers R (two for each score) is
// at most K·T/c. The test therefore alarms at c = K·T/α: the probability of any false alarm within
// T rows is at most α. The R of different scores are martingales of different filtrations, and
// their mean is none, hence the sum over K.
//
// What breaks it: rows that are sorted, repeated, or of one customer at a time are not
// exchangeable. A score that depended on the served rows would break it too.
#ifndef PHIMAP_CORE_DRIFT_SEQUENTIAL_TEST_H_
#define PHIMAP_CORE_DRIFT_SEQUENTIAL_TEST_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/drift/drift_reference.h"
#include "core/random/random_stream.h"

namespace phimap {

struct SequentialTestSpec {
  // α, the largest probability of any false alarm within `rows` rows.
  double false_alarms = 0.05;
  // T: 30 days at ten rows a second.
  double rows = 30.0 * 86400 * 10;
  // Number of rows after which bag and evidence begin anew.
  int64_t restart_rows = 10'000;
  // Seed of the numbers θ.
  uint64_t seed = 0;
};

// Evidence against one score. `evidence` is ln R / ln c: 0 for R ≤ 1, and at least 1 at an alarm.
struct ScoreEvidence {
  // Index of the score.
  int64_t score = 0;
  // Evidence that its values have moved, and that they are spread differently.
  double location = 0;
  double spread = 0;

  double largest() const { return location > spread ? location : spread; }
};

// Not thread-safe. Equal rows in equal order give equal evidence.
class SequentialTest {
 public:
  // The reference must outlive the test.
  SequentialTest(const DriftReference& reference, const SequentialTestSpec& spec);

  // Adds a row. `scores` has one finite number for each score.
  void Add(const double* scores);

  // Number of rows added.
  int64_t rows() const { return rows_; }
  // c, the R at which the test alarms.
  double threshold() const { return threshold_; }
  // Evidence against each score: the largest since the restart before last, so that it does not
  // vanish with a restart.
  std::vector<ScoreEvidence> Evidence() const;
  // The largest evidence of any score.
  double largest_evidence() const;

  int64_t memory_bytes() const;

 private:
  static constexpr std::array<double, 8> kBets = {-1, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1};
  // R^ε of one number p or q, for each bet ε.
  using Bets = std::array<double, kBets.size()>;

  // The state of a score. The counts of a bag are in a Fenwick tree.
  struct Track {
    std::vector<uint32_t> tree;
    Bets location = {};
    Bets spread = {};
    // Largest R since the restart, and between the last two restarts.
    double location_peak = 0, spread_peak = 0;
    double earlier_location_peak = 0, earlier_spread_peak = 0;
  };

  void Restart();
  double PValue(const ScoreHistogram& histogram, Track& track, double score, double theta);
  static double Bet(double number, Bets& bets);
  double EvidenceOf(double r) const;

  const DriftReference& reference_;
  const SequentialTestSpec spec_;
  const double threshold_;
  const RandomStream ties_;
  int64_t rows_ = 0;
  int64_t since_restart_ = 0;
  std::vector<Track> tracks_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_DRIFT_SEQUENTIAL_TEST_H_
