#include "core/drift/sequential_test.h"

#include <algorithm>
#include <cmath>

#include "core/random/stream_ids.h"

namespace phimap {
namespace {

// Keeps R finite: ln R / ln c is then beyond any alarm.
constexpr double kLargestEvidence = 1e300;

uint32_t LowestBit(uint32_t i) { return i & (~i + 1); }

// Fenwick tree over bins: tree[i − 1] is the sum of the counts of bins i − LowestBit(i) … i − 1.
std::vector<uint32_t> TreeOf(const std::vector<uint16_t>& counts) {
  std::vector<uint32_t> tree(counts.begin(), counts.end());
  const auto size = static_cast<uint32_t>(tree.size());
  for (uint32_t i = 1; i <= size; ++i) {
    if (const uint32_t parent = i + LowestBit(i); parent <= size) tree[parent - 1] += tree[i - 1];
  }
  return tree;
}

// Returns the sum of the counts of bins 0 … bins − 1.
uint32_t SumBelow(const std::vector<uint32_t>& tree, uint32_t bins) {
  uint32_t sum = 0;
  for (uint32_t i = bins; i > 0; i -= LowestBit(i)) sum += tree[i - 1];
  return sum;
}

void Increment(std::vector<uint32_t>& tree, uint32_t bin) {
  for (uint32_t i = bin + 1; i <= tree.size(); i += LowestBit(i)) ++tree[i - 1];
}

}  // namespace

SequentialTest::SequentialTest(const DriftReference& reference, const SequentialTestSpec& spec)
    : reference_(reference),
      spec_(spec),
      threshold_(2 * static_cast<double>(reference.scores.count()) * spec.rows / spec.false_alarms),
      ties_(spec.seed, StreamId::kDriftTies),
      tracks_(reference.histograms.size()) {
  Restart();
}

void SequentialTest::Restart() {
  since_restart_ = 0;
  for (size_t s = 0; s < tracks_.size(); ++s) {
    Track fresh;
    fresh.tree = TreeOf(reference_.histograms[s].counts);
    fresh.earlier_location_peak = tracks_[s].location_peak;
    fresh.earlier_spread_peak = tracks_[s].spread_peak;
    tracks_[s] = std::move(fresh);
  }
}

double SequentialTest::PValue(const ScoreHistogram& histogram, Track& track, double score,
                              double theta) {
  const auto bin = static_cast<uint32_t>(histogram.BinOf(score));
  const auto bag = static_cast<double>(reference_.rows + since_restart_);
  const uint32_t below = SumBelow(track.tree, bin);
  const uint32_t up_to = SumBelow(track.tree, bin + 1);
  Increment(track.tree, bin);
  return (bag - up_to + theta * (1.0 + (up_to - below))) / (bag + 1);
}

// Updates the bets on one number, and returns R.
double SequentialTest::Bet(double number, Bets& bets) {
  double sum = 0;
  for (size_t e = 0; e < bets.size(); ++e) {
    bets[e] = std::min((1 + bets[e]) * (1 + kBets[e] * (number - 0.5)), kLargestEvidence);
    sum += bets[e] / static_cast<double>(kBets.size());
  }
  return sum;
}

void SequentialTest::Add(const double* scores) {
  if (since_restart_ == spec_.restart_rows) Restart();
  const auto first = static_cast<uint64_t>(rows_) * tracks_.size();
  for (size_t s = 0; s < tracks_.size(); ++s) {
    Track& track = tracks_[s];
    const double theta = ties_.UniformOpen01(first + s);
    const double p = PValue(reference_.histograms[s], track, scores[s], theta);
    track.location_peak = std::max(track.location_peak, Bet(p, track.location));
    track.spread_peak = std::max(track.spread_peak, Bet(2 * std::abs(p - 0.5), track.spread));
  }
  ++rows_;
  ++since_restart_;
}

double SequentialTest::EvidenceOf(double r) const {
  return r <= 1 ? 0 : std::log(r) / std::log(threshold_);
}

std::vector<ScoreEvidence> SequentialTest::Evidence() const {
  std::vector<ScoreEvidence> evidence;
  for (size_t s = 0; s < tracks_.size(); ++s) {
    const Track& track = tracks_[s];
    evidence.push_back(
        {.score = static_cast<int64_t>(s),
         .location = EvidenceOf(std::max(track.location_peak, track.earlier_location_peak)),
         .spread = EvidenceOf(std::max(track.spread_peak, track.earlier_spread_peak))});
  }
  return evidence;
}

double SequentialTest::largest_evidence() const {
  double largest = 0;
  for (const Track& track : tracks_) {
    largest = std::max({largest, track.location_peak, track.spread_peak,
                        track.earlier_location_peak, track.earlier_spread_peak});
  }
  return EvidenceOf(largest);
}

int64_t SequentialTest::memory_bytes() const {
  int64_t bytes = 0;
  for (const Track& track : tracks_) {
    bytes += static_cast<int64_t>(sizeof(track) + track.tree.size() * sizeof(uint32_t));
  }
  return bytes;
}

}  // namespace phimap
