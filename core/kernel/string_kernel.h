// Kernels of strings: what two strings have of n-grams in common, counted exactly.
//
// A string is a sequence of units: characters (code points of UTF-8), bytes, or words (what stands
// between white space of ASCII; how much of it does not matter). An n-gram is n units in a row.
// With c_x(g) the number of times that g occurs in x, and G_x the set of those that occur,
//
//   spectrum(x, y) = Σ_g c_x(g)·c_y(g)            raw counts of exactly n units: not normalised
//   jaccard(x, y)  = |G_x ∩ G_y| / |G_x ∪ G_y|    1 if both are empty
//
// The spectrum is an inner product of counts (Leslie, Eskin, Noble, "The spectrum kernel", PSB
// 2002). The Jaccard index is positive semidefinite by Gower, "A general coefficient of similarity
// and some of its properties", Biometrics 27, 1971, Theorem; a string without n-grams stands for
// the set of one thing that no other has, which leaves that true. A string shorter than n has no
// n-grams: its spectrum with anything, and with itself, is 0, and normalize() of it 0 as well.
//
// N-grams are compared as what they are: a hash only finds them, so that two that share one stay
// two.
#ifndef PHIMAP_CORE_KERNEL_STRING_KERNEL_H_
#define PHIMAP_CORE_KERNEL_STRING_KERNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Numbers of the artifact format; never reused.
enum class StringMeasure : uint8_t { kSpectrum = 1, kJaccard = 2 };
enum class StringUnit : uint8_t { kCharacter = 1, kByte = 2, kWord = 3 };

// "character", "byte" or "word".
absl::string_view StringUnitName(StringUnit unit);

inline constexpr int32_t kMaxNgram = 64;

struct StringKernel {
  StringMeasure measure = StringMeasure::kSpectrum;
  StringUnit unit = StringUnit::kCharacter;
  int32_t n = 1;
  friend bool operator==(const StringKernel&, const StringKernel&) = default;
};

// The words of a text with one space behind each.
std::string SpacedWords(absl::string_view text);

// How often each n-gram of one string occurs.
class NgramCounts {
 public:
  // Counts anew. `text` must outlive what is counted, unless the units are words, of which a copy
  // is kept. In what is no UTF-8, a byte that continues nothing belongs to the character before it.
  void Count(absl::string_view text, StringUnit unit, int32_t n);
  // The same of words that are SpacedWords already; the n-grams are views into `text`.
  void CountSpaced(absl::string_view text, StringUnit unit, int32_t n);

  const absl::flat_hash_map<absl::string_view, int32_t>& counts() const { return counts_; }
  // k(x, x) of a spectrum: Σ c². At most 2^40 for a string of 2^20 bytes.
  double SumOfSquares() const;

 private:
  absl::flat_hash_map<absl::string_view, int32_t> counts_;
  // Where each unit begins, and the end.
  std::vector<int32_t> starts_;
  std::string words_;
};

// out[m] = k_m(x, x).
void StringSquares(const std::vector<StringKernel>& kernels, absl::string_view x,
                   NgramCounts& scratch, double* out);

// Values of string kernels between a string and many fixed ones, by an index of the n-grams of
// those: the time is that of the n-grams they share with x. Immutable; thread-safe.
class StringIndex {
 public:
  // Bytes of memory for each byte of its strings and each pair of unit and n, at most, while it is
  // made: an n-gram's place in a table that has just doubled, beside the old one, and its postings.
  static constexpr int64_t kBytesPerUnit = 96;

  StringIndex() = default;
  // REQUIRES: kernels differ from each other, strings are under 2^31 bytes in all.
  StringIndex(const std::vector<StringKernel>& kernels,
              const std::vector<const std::string*>& strings);
  // Its tables point into it.
  StringIndex(const StringIndex&) = delete;
  StringIndex& operator=(const StringIndex&) = delete;
  StringIndex(StringIndex&&) noexcept = default;
  StringIndex& operator=(StringIndex&&) noexcept = default;

  int64_t strings() const { return count_; }
  // out[m][j] = k_m(x, string j), and self[m] = k_m(x, x). Exact but for the one division of a
  // jaccard, so that the bits are the same everywhere.
  void Values(absl::string_view x, NgramCounts& scratch, double* const* out, double* self) const;
  int64_t memory_bytes() const;
  // What a byte of x takes, if x is like the fixed strings: n-grams that are looked up, and
  // postings that are walked over.
  double lookups_per_byte() const { return static_cast<double>(tables_.size()); }
  double postings_per_byte() const { return postings_per_byte_; }

 private:
  // That a string has an n-gram, and how often.
  struct Posting {
    int32_t string;
    int32_t count;
  };
  // Postings begin .. end − 1.
  struct Place {
    int32_t begin = 0;
    int32_t end = 0;
  };
  // Of one unit and n.
  struct Table {
    StringUnit unit;
    int32_t n;
    // The kernels that it serves; −1: none.
    int spectrum = -1;
    int jaccard = -1;
    // What the n-grams are views into, if not the index' own strings.
    std::vector<std::string> words;
    absl::flat_hash_map<absl::string_view, Place> places;
    std::vector<Posting> postings;
    // Different n-grams of each string.
    std::vector<int32_t> different;
  };

  void FillTable(Table& table);

  std::vector<std::string> strings_;
  std::vector<Table> tables_;
  int64_t count_ = 0;
  double postings_per_byte_ = 0;
};

// What an index of strings of so many bytes is counted as, for limits: a byte for each unit and n.
int64_t IndexedBytes(const std::vector<StringKernel>& kernels, int64_t string_bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_STRING_KERNEL_H_
