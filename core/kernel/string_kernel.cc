#include "core/kernel/string_kernel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Maximum number of n-grams to reserve memory for. In a short string most n-grams are different.
constexpr size_t kReserved = 4096;

bool ContinuesCharacter(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

}  // namespace

absl::string_view StringUnitName(StringUnit unit) {
  switch (unit) {
    case StringUnit::kCharacter:
      return "character";
    case StringUnit::kByte:
      return "byte";
    case StringUnit::kWord:
      break;
  }
  return "word";
}

std::string SpacedWords(absl::string_view text) {
  std::string words;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t\n\r\v\f"), absl::SkipEmpty())) {
    words.append(word.data(), word.size());
    words.push_back(' ');
  }
  return words;
}

void NgramCounts::Count(absl::string_view text, StringUnit unit, int32_t n) {
  if (unit != StringUnit::kWord) return CountSpaced(text, unit, n);
  counts_.clear();  // its keys are views into the old words_
  words_ = SpacedWords(text);
  CountSpaced(words_, unit, n);
}

void NgramCounts::CountSpaced(absl::string_view text, StringUnit unit, int32_t n) {
  counts_.clear();
  starts_.clear();
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < size; ++i) {
    const bool starts =
        i == 0 || unit == StringUnit::kByte ||
        (unit == StringUnit::kWord ? text[i - 1] == ' ' : !ContinuesCharacter(text[i]));
    if (starts) starts_.push_back(i);
  }
  starts_.push_back(size);
  if (starts_.size() > static_cast<size_t>(n)) {
    counts_.reserve(std::min<size_t>(starts_.size() - static_cast<size_t>(n), kReserved));
  }
  for (size_t i = 0; i + static_cast<size_t>(n) < starts_.size(); ++i) {
    const int32_t begin = starts_[i];
    ++counts_[text.substr(begin, starts_[i + static_cast<size_t>(n)] - begin)];
  }
}

double NgramCounts::SumOfSquares() const {
  int64_t sum = 0;
  for (const auto& [gram, count] : counts_) sum += int64_t{count} * count;
  return static_cast<double>(sum);
}

void StringSquares(const std::vector<StringKernel>& kernels, absl::string_view x,
                   NgramCounts& scratch, double* out) {
  for (size_t m = 0; m < kernels.size(); ++m) {
    out[m] = 1;
    if (kernels[m].measure != StringMeasure::kSpectrum) continue;
    scratch.Count(x, kernels[m].unit, kernels[m].n);
    out[m] = scratch.SumOfSquares();
  }
}

StringIndex::StringIndex(const std::vector<StringKernel>& kernels,
                         const std::vector<const std::string*>& strings)
    : count_(static_cast<int64_t>(strings.size())) {
  for (const std::string* string : strings) strings_.push_back(*string);
  for (size_t m = 0; m < kernels.size(); ++m) {
    auto table = std::find_if(tables_.begin(), tables_.end(), [&](const Table& known) {
      return known.unit == kernels[m].unit && known.n == kernels[m].n;
    });
    if (table == tables_.end()) {
      table = tables_.insert(tables_.end(), Table{.unit = kernels[m].unit,
                                                  .n = kernels[m].n,
                                                  .words = {},
                                                  .places = {},
                                                  .postings = {},
                                                  .different = {}});
    }
    int& kernel = kernels[m].measure == StringMeasure::kSpectrum ? table->spectrum : table->jaccard;
    PHIMAP_CHECK(kernel < 0);
    kernel = static_cast<int>(m);
  }
  for (Table& table : tables_) FillTable(table);
  const bool words_alone = std::all_of(tables_.begin(), tables_.end(), [](const Table& table) {
    return table.unit == StringUnit::kWord;
  });
  if (words_alone) strings_ = {};
}

// Makes two passes: counts the postings of each n-gram, then stores them.
void StringIndex::FillTable(Table& table) {
  if (table.unit == StringUnit::kWord) {
    for (const std::string& string : strings_) table.words.push_back(SpacedWords(string));
  }
  const std::vector<std::string>& strings =
      table.unit == StringUnit::kWord ? table.words : strings_;
  NgramCounts counts;
  double bytes = 1;
  for (const std::string& string : strings) {
    bytes += static_cast<double>(string.size());
    counts.CountSpaced(string, table.unit, table.n);
    table.different.push_back(static_cast<int32_t>(counts.counts().size()));
    for (const auto& [gram, count] : counts.counts()) ++table.places[gram].end;
  }
  int32_t end = 0;
  double walked = 0;
  for (auto& [gram, place] : table.places) {
    const int32_t count = place.end;
    walked += static_cast<double>(count) * count;
    place = {end, end};  // `end` moves as postings are stored
    end += count;
  }
  postings_per_byte_ += walked / bytes;
  table.postings.resize(static_cast<size_t>(end));
  for (size_t j = 0; j < strings.size(); ++j) {
    counts.CountSpaced(strings[j], table.unit, table.n);
    for (const auto& [gram, count] : counts.counts()) {
      Place& place = table.places.find(gram)->second;
      table.postings[static_cast<size_t>(place.end++)] = {static_cast<int32_t>(j), count};
    }
  }
}

// Sums of integers below 2^53 are exact in any order, so the order of the hash map does not matter.
void StringIndex::Values(absl::string_view x, NgramCounts& scratch, double* const* out,
                         double* self) const {
  for (const Table& table : tables_) {
    scratch.Count(x, table.unit, table.n);
    const auto& counts = scratch.counts();
    double* const spectrum = table.spectrum < 0 ? nullptr : out[table.spectrum];
    double* const jaccard = table.jaccard < 0 ? nullptr : out[table.jaccard];
    if (spectrum != nullptr) std::fill_n(spectrum, count_, 0.0);
    if (jaccard != nullptr) std::fill_n(jaccard, count_, 0.0);
    for (const auto& [gram, count] : counts) {
      const auto found = table.places.find(gram);
      if (found == table.places.end()) continue;
      const Posting* const begin = table.postings.data() + found->second.begin;
      const Posting* const end = table.postings.data() + found->second.end;
      for (const Posting* p = begin; spectrum != nullptr && p < end; ++p) {
        spectrum[p->string] += static_cast<double>(count) * p->count;
      }
      for (const Posting* p = begin; jaccard != nullptr && p < end; ++p) jaccard[p->string] += 1;
    }
    if (spectrum != nullptr) self[table.spectrum] = scratch.SumOfSquares();
    if (jaccard == nullptr) continue;
    self[table.jaccard] = 1;
    for (int64_t j = 0; j < count_; ++j) {
      const double either =
          static_cast<double>(counts.size()) + static_cast<double>(table.different[j]) - jaccard[j];
      jaccard[j] = either == 0 ? 1.0 : jaccard[j] / either;
    }
  }
}

int64_t StringIndex::memory_bytes() const {
  const auto bytes_of = [](const std::vector<std::string>& strings) {
    size_t bytes = strings.size() * sizeof(std::string);
    for (const std::string& string : strings) bytes += string.size();
    return bytes;
  };
  size_t bytes = bytes_of(strings_);
  for (const Table& table : tables_) {
    bytes += bytes_of(table.words) + table.postings.size() * sizeof(Posting) +
             table.places.capacity() * (sizeof(*table.places.begin()) + 1) +
             table.different.size() * sizeof(int32_t);
  }
  return static_cast<int64_t>(bytes);
}

int64_t IndexedBytes(const std::vector<StringKernel>& kernels, int64_t string_bytes) {
  int64_t tables = 0;
  for (size_t m = 0; m < kernels.size(); ++m) {
    const bool first = std::none_of(kernels.begin(), kernels.begin() + m, [&](const auto& known) {
      return known.unit == kernels[m].unit && known.n == kernels[m].n;
    });
    if (first) ++tables;
  }
  return tables * string_bytes;
}

}  // namespace phimap
