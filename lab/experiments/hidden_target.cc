#include "lab/experiments/hidden_target.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"

namespace phimap::lab {
namespace {

constexpr int kBits = 30;
constexpr size_t kHidden = size_t{1} << (kBits / 2);

uint32_t WordOf(uint64_t bits) { return static_cast<uint32_t>(bits >> (64 - kBits)); }

}  // namespace

HiddenTarget::HiddenTarget(uint64_t seed, double alpha) : alpha_(alpha) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  RandomCursor coins(RandomStream(seed, StreamId::kLabLabels));
  while (classes_.size() < kHidden) {
    classes_.emplace(WordOf(random.Bits64()), static_cast<int32_t>(coins.Bits64() & 1));
  }
  for (const auto& [bits, label] : classes_) words_.push_back({bits, label});
  // The order of a hash table is not deterministic.
  std::sort(words_.begin(), words_.end(),
            [](const Word& a, const Word& b) { return a.bits < b.bits; });
}

double HiddenTarget::Kernel(const Word& x, const Word& y) const {
  if (x.bits == y.bits) return 1;
  return (1 - alpha_) * (x.label == y.label ? 1 : -0.5);
}

std::vector<Word> HiddenTarget::Draw(int64_t count, uint64_t seed) const {
  RandomCursor random(RandomStream(seed, StreamId::kLabOrder));
  std::vector<Word> drawn(static_cast<size_t>(count));
  for (Word& word : drawn) word = words_[random.UniformBelow(words_.size())];
  return drawn;
}

std::vector<Word> HiddenTarget::DrawElsewhere(int64_t count, uint64_t seed) const {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  std::vector<Word> drawn(static_cast<size_t>(count));
  for (Word& word : drawn) {
    word.bits = WordOf(random.Bits64());
    const auto inside = classes_.find(word.bits);
    if (inside != classes_.end()) word.label = inside->second;
  }
  return drawn;
}

Matrix<double> HiddenTarget::Block(const std::vector<Word>& x, const std::vector<Word>& z) const {
  Matrix<double> block(static_cast<int64_t>(x.size()), static_cast<int64_t>(z.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < z.size(); ++j) block(i, j) = Kernel(x[i], z[j]);
  }
  return block;
}

absl::StatusOr<MapOfWords> MapOfWords::Build(const HiddenTarget& target, const std::string& name,
                                             int64_t landmarks, std::vector<Word> stream,
                                             uint64_t seed) {
  const Matrix<double> gram = target.Block(stream, stream);
  PHIMAP_ASSIGN_OR_RETURN(BuiltMap map,
                          BuiltMap::Build({.mapping = absl::StrCat(name, "(landmarks=", landmarks,
                                                                   ", serving_type=float64)"),
                                           .kernel = "precomputed()"},
                                          gram.view(), seed));
  std::vector<Word> kept;
  for (const int64_t row : map.certificate().landmark_rows) kept.push_back(stream[row]);
  return MapOfWords(std::move(map), std::move(kept));
}

absl::StatusOr<Examples> MapOfWords::Features(const HiddenTarget& target,
                                              const std::vector<Word>& words) const {
  const Matrix<double> values = target.Block(words, landmarks_);
  Examples examples;
  PHIMAP_ASSIGN_OR_RETURN(examples.rows, map_.Map(values.view()));
  for (const Word& word : words) examples.labels.push_back(std::max(word.label, 0));
  return examples;
}

int64_t MapOfWords::landmarks_inside() const {
  return std::count_if(landmarks_.begin(), landmarks_.end(),
                       [](const Word& word) { return word.label >= 0; });
}

}  // namespace phimap::lab
