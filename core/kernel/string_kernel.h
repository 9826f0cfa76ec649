// Kernels of strings: the n-grams that two strings share, counted exactly.
//
// A string is a sequence of units: characters (code points of UTF-8), bytes, or words (separated by
// ASCII white space of any length). An n-gram is n units in a row. With c_x(g) the number of times
// that g occurs in x, and G_x the set of those that occur,
//
//   spectrum(x, y) = Σ_g c_x(g)·c_y(g)            raw counts of exactly n units: not normalised
//   jaccard(x, y)  = |G_x ∩ G_y| / |G_x ∪ G_y|    1 if both are empty
//
// The spectrum is an inner product of counts (Leslie, Eskin, Noble, "The spectrum kernel", PSB
// 2002). The Jaccard index is positive semidefinite by Gower, "A general coefficient of similarity
// and some of its properties", Biometrics 27, 1971, Theorem; a string without n-grams counts as a
// set with one element of its own, which preserves this. A string shorter than n has no n-grams:
// its spectrum with anything, and with itself, is 0, and normalize() of it 0 as well.
//
// N-grams are compared in full: a hash only finds them, so that two with equal hashes stay
// distinct.
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

// Returns the words of a text, each followed by one space.
std::string SpacedWords(absl::string_view text);

// Number of occurrences of each n-gram of one string.
class NgramCounts {
 public:
  // Counts from scratch. `text` must outlive the counts, unless the units are words, of which a
  // copy is kept. In invalid UTF-8, a stray continuation byte belongs to the previous character.
  void Count(absl::string_view text, StringUnit unit, int32_t n);
  // Counts words that are SpacedWords already; the n-grams are views into `text`.
  void CountSpaced(absl::string_view text, StringUnit unit, int32_t n);

  const absl::flat_hash_map<absl::string_view, int32_t>& counts() const { return counts_; }
  // k(x, x) of a spectrum: Σ c². At most 2^40 for a string of 2^20 bytes.
  double SumOfSquares() const;

 private:
  absl::flat_hash_map<absl::string_view, int32_t> counts_;
  // Start of each unit, and the end.
  std::vector<int32_t> starts_;
  std::string words_;
};

// out[m] = k_m(x, x).
void StringSquares(const std::vector<StringKernel>& kernels, absl::string_view x,
                   NgramCounts& scratch, double* out);

// Values of string kernels between a string and many fixed ones, by an index of their n-grams. Time
// grows with the occurrences of x's n-grams in the fixed strings. Immutable; thread-safe.
class StringIndex {
 public:
  // Maximum memory, per byte of its strings and pair of unit and n, while the index is built: an
  // n-gram's slot in a table that has just doubled, beside the old table, and its postings.
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
  // out[m][j] = k_m(x, string j), and self[m] = k_m(x, x). Exact except for the one division of a
  // jaccard, so that the bits are equal everywhere.
  void Values(absl::string_view x, NgramCounts& scratch, double* const* out, double* self) const;
  int64_t memory_bytes() const;
  // Cost of a byte of x, if x is like the fixed strings: n-grams that are looked up, and postings
  // that are walked over.
  double lookups_per_byte() const { return static_cast<double>(tables_.size()); }
  double postings_per_byte() const { return postings_per_byte_; }

 private:
  // States that a string has an n-gram, and how often.
  struct Posting {
    int32_t string;
    int32_t count;
  };
  // Postings begin .. end − 1.
  struct Place {
    int32_t begin = 0;
    int32_t end = 0;
  };
  // Table of one unit and n.
  struct Table {
    StringUnit unit;
    int32_t n;
    // Indices of the kernels that use this table; −1: none.
    int spectrum = -1;
    int jaccard = -1;
    // Memory of the n-grams that are not views into the index's own strings.
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

// Size of an index of strings of so many bytes, for limits: a byte for each unit and n.
int64_t IndexedBytes(const std::vector<StringKernel>& kernels, int64_t string_bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_STRING_KERNEL_H_
