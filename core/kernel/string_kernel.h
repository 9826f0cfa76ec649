// String kernels compare two strings by the n-grams that both contain. The n-grams are counted
// exactly.
//
// A string is a sequence of units. A unit is a character (a code point of UTF-8), a byte, or a word
// (words are separated by ASCII white space of any length). An n-gram is n consecutive units. Let
// c_x(g) be the number of times that the n-gram g occurs in x, and G_x the set of n-grams that
// occur in x:
//
//   spectrum(x, y) = Σ_g c_x(g)·c_y(g)            raw counts of n-grams, not normalised
//   jaccard(x, y)  = |G_x ∩ G_y| / |G_x ∪ G_y|    1 if both are empty
//
// Both are positive semidefinite. The spectrum is an inner product of counts (Leslie, Eskin, Noble,
// "The spectrum kernel", PSB 2002). For the Jaccard index, see the Theorem of Gower, "A general
// coefficient of similarity and some of its properties", Biometrics 27, 1971.
//
// A string shorter than n has no n-grams. Its spectrum with any string, also with itself, is 0, and
// so is its normalize(). The Jaccard index treats such strings as sets whose only element is one
// special n-gram, which keeps the index positive semidefinite.
//
// N-grams are compared in full. Hashes are used only to locate them, so two n-grams with equal
// hashes stay distinct.
#ifndef PHIMAP_CORE_KERNEL_STRING_KERNEL_H_
#define PHIMAP_CORE_KERNEL_STRING_KERNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace phimap {

// The numbers are part of the artifact format and are never reused.
enum class StringMeasure : uint8_t { kSpectrum = 1, kJaccard = 2 };
enum class StringUnit : uint8_t { kCharacter = 1, kByte = 2, kWord = 3 };

// Returns "character", "byte" or "word".
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
  // Replaces the counts by those of `text`. `text` must outlive the counts, unless the units are
  // words, which are copied. In invalid UTF-8, a stray continuation byte belongs to the previous
  // character.
  void Count(absl::string_view text, StringUnit unit, int32_t n);
  // Like Count, but `text` must already be SpacedWords if the units are words. The n-grams are
  // views into `text`.
  void CountSpaced(absl::string_view text, StringUnit unit, int32_t n);

  const absl::flat_hash_map<absl::string_view, int32_t>& counts() const { return counts_; }
  // Returns k(x, x) of the spectrum kernel, which is Σ c². It is at most 2^40 for a string of 2^20
  // bytes.
  double SumOfSquares() const;

 private:
  absl::flat_hash_map<absl::string_view, int32_t> counts_;
  // Start of each unit of the text, and the end of the last one.
  std::vector<int32_t> starts_;
  std::string words_;
};

// Computes out[m] = k_m(x, x).
void StringSquares(const std::vector<StringKernel>& kernels, absl::string_view x,
                   NgramCounts& scratch, double* out);

// Computes values of string kernels between a string x and many fixed strings, with an index of the
// fixed strings' n-grams. Time grows with the number of fixed strings that have each n-gram of x.
// Immutable; thread-safe.
class StringIndex {
 public:
  // Maximum memory that an index takes while it is built: this many bytes for each byte of its
  // strings and for each pair of unit and n. The bytes are for an n-gram's slot in a table that has
  // just doubled, its slot in the old table, and its postings.
  static constexpr int64_t kBytesPerUnit = 96;

  StringIndex() = default;
  // REQUIRES: kernels differ from each other, and strings have under 2^31 bytes in all.
  StringIndex(const std::vector<StringKernel>& kernels,
              const std::vector<const std::string*>& strings);
  // Not copyable, because the tables point into the index.
  StringIndex(const StringIndex&) = delete;
  StringIndex& operator=(const StringIndex&) = delete;
  StringIndex(StringIndex&&) noexcept = default;
  StringIndex& operator=(StringIndex&&) noexcept = default;

  int64_t strings() const { return count_; }
  // Computes out[m][j] = k_m(x, string j) and self[m] = k_m(x, x) for each kernel k_m. The spectrum
  // is exact. A jaccard is rounded only once, in its division. The bits are therefore equal
  // everywhere.
  void Values(absl::string_view x, NgramCounts& scratch, double* const* out, double* self) const;
  int64_t memory_bytes() const;
  // Cost per byte of x, if x is like the fixed strings: n-grams that are looked up, and postings
  // that are visited.
  double lookups_per_byte() const { return static_cast<double>(tables_.size()); }
  double postings_per_byte() const { return postings_per_byte_; }

 private:
  // String number `string` contains the n-gram `count` times.
  struct Posting {
    int32_t string;
    int32_t count;
  };
  // The postings of an n-gram: begin … end − 1.
  struct Place {
    int32_t begin = 0;
    int32_t end = 0;
  };
  // The table for one pair of unit and n.
  struct Table {
    StringUnit unit;
    int32_t n;
    // Numbers of the spectrum kernel and of the Jaccard kernel that use the table; −1 if no such
    // kernel does.
    int spectrum = -1;
    int jaccard = -1;
    // The text of the n-grams of words. For other units it is empty, and n-grams point into
    // `strings_`.
    std::vector<std::string> words;
    absl::flat_hash_map<absl::string_view, Place> places;
    std::vector<Posting> postings;
    // Number of different n-grams of each string.
    std::vector<int32_t> different;
  };

  void FillTable(Table& table);

  std::vector<std::string> strings_;
  std::vector<Table> tables_;
  int64_t count_ = 0;
  double postings_per_byte_ = 0;
};

// Returns the size to which limits on an index apply: `string_bytes`, the bytes of all its strings,
// counted once for each different pair of unit and n among `kernels`.
int64_t IndexedBytes(const std::vector<StringKernel>& kernels, int64_t string_bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_STRING_KERNEL_H_
