#include "core/kernel/string_kernel.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "core/status/utf8.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Returns texts with many repeats. Some contain characters of two and three bytes, and some are
// empty.
std::vector<std::string> Texts(int64_t count) {
  const std::vector<std::string> pieces = {"a", "b", "ab", " ", "\n", "ä", "€", "abc", "x  y"};
  const RandomStream random(5, StreamId::kSelfCheck);
  uint64_t draw = 0;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    std::string text;
    const uint64_t length = i % 9 == 0 ? i % 3 : random.UniformBelow(draw++, 30);
    for (uint64_t k = 0; k < length; ++k) {
      text += pieces[random.UniformBelow(draw++, pieces.size())];
    }
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> UnitsOf(const std::string& text, StringUnit unit) {
  std::vector<std::string> units;
  std::string word;
  for (const char c : text) {
    if (unit == StringUnit::kWord) {
      if (std::string(" \t\n\r\v\f").find(c) != std::string::npos) {
        if (!word.empty()) units.push_back(word);
        word.clear();
      } else {
        word += c;
      }
    } else if (unit == StringUnit::kByte || units.empty() ||
               (static_cast<uint8_t>(c) & 0xc0) != 0x80) {
      units.push_back(std::string(1, c));
    } else {
      units.back() += c;
    }
  }
  if (!word.empty()) units.push_back(word);
  return units;
}

// Counts n-grams directly by the definition.
std::map<std::vector<std::string>, int64_t> NaiveCounts(const std::string& text, StringUnit unit,
                                                        int n) {
  const std::vector<std::string> units = UnitsOf(text, unit);
  std::map<std::vector<std::string>, int64_t> counts;
  for (size_t i = 0; i + n <= units.size(); ++i) {
    ++counts[std::vector<std::string>(units.begin() + i, units.begin() + i + n)];
  }
  return counts;
}

double Naive(const StringKernel& kernel, const std::string& x, const std::string& y) {
  const auto a = NaiveCounts(x, kernel.unit, kernel.n);
  const auto b = NaiveCounts(y, kernel.unit, kernel.n);
  double products = 0, both = 0;
  for (const auto& [gram, count] : a) {
    const auto other = b.find(gram);
    if (other == b.end()) continue;
    both += 1;
    products += static_cast<double>(count * other->second);
  }
  if (kernel.measure == StringMeasure::kSpectrum) return products;
  const double either = static_cast<double>(a.size() + b.size()) - both;
  return either == 0 ? 1 : both / either;
}

void ExpectNaiveValues(const std::vector<std::string>& texts) {
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<const std::string*> strings;
  for (const std::string& text : texts) strings.push_back(&text);
  std::vector<StringKernel> kernels;
  for (const StringMeasure measure : {StringMeasure::kSpectrum, StringMeasure::kJaccard}) {
    for (const StringUnit unit : {StringUnit::kCharacter, StringUnit::kByte, StringUnit::kWord}) {
      for (const int n : {1, 2, 3, 64}) kernels.push_back({measure, unit, n});
    }
  }
  StringIndex moved(kernels, strings);
  const StringIndex index = std::move(moved);  // pointers in its tables stay valid
  NgramCounts scratch;
  std::vector<std::vector<double>> values(kernels.size(), std::vector<double>(count));
  std::vector<double*> out;
  for (auto& row : values) out.push_back(row.data());
  std::vector<double> self(kernels.size());
  std::vector<double> squares(kernels.size());
  for (const std::string& x : texts) {
    index.Values(x, scratch, out.data(), self.data());
    StringSquares(kernels, x, scratch, squares.data());
    for (size_t m = 0; m < kernels.size(); ++m) {
      ASSERT_EQ(self[m], Naive(kernels[m], x, x)) << m;
      ASSERT_EQ(squares[m], self[m]) << m;
      for (int64_t j = 0; j < count; ++j) {
        const double naive = Naive(kernels[m], x, texts[j]);
        ASSERT_EQ(values[m][j], naive) << m << " " << x;
        ASSERT_LE(naive * naive, self[m] * Naive(kernels[m], texts[j], texts[j])) << m;
      }
    }
  }
}

TEST(StringKernelTest, ValuesAreThoseOfTheDefinitions) { ExpectNaiveValues(Texts(40)); }

// Strings of any bytes: zeros, bytes that are no UTF-8, every kind of white space.
TEST(StringKernelTest, ValuesOfAnyBytesAreThoseOfTheDefinitions) {
  const RandomStream random(6, StreamId::kSelfCheck);
  uint64_t draw = 0;
  for (const uint64_t alphabet : {4, 64, 256}) {
    std::vector<std::string> strings;
    for (int64_t i = 0; i < 16; ++i) {
      std::string string(random.UniformBelow(draw++, 100), 0);
      for (char& c : string) c = static_cast<char>(7 + random.UniformBelow(draw++, alphabet));
      strings.push_back(string);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectNaiveValues(strings));
  }
}

// Compares a string of a megabyte that repeats a single byte. Its counts and their squares are as
// large as possible, and must still be exact.
TEST(StringKernelTest, TheLongestStringHasExactCounts) {
  const std::string longest(int64_t{1} << 20, 'a');
  const std::string shorter(1000, 'a');
  const std::vector<StringKernel> kernels = {{StringMeasure::kSpectrum, StringUnit::kByte, 1},
                                             {StringMeasure::kJaccard, StringUnit::kByte, 1}};
  const StringIndex index(kernels, {&longest, &shorter});
  NgramCounts scratch;
  double spectrum[2], jaccard[2], self[2];
  double* const out[] = {spectrum, jaccard};
  index.Values(longest, scratch, out, self);
  EXPECT_EQ(self[0], std::ldexp(1.0, 40));
  EXPECT_EQ(spectrum[0], std::ldexp(1.0, 40));
  EXPECT_EQ(spectrum[1], std::ldexp(1000.0, 20));
  EXPECT_EQ(jaccard[1], 1);
}

// An index of a string must not need more bytes than stated for it, because memory limits rely on
// the stated number.
TEST(StringKernelTest, AnIndexIsNoLargerThanItsBytesSay) {
  const RandomStream random(7, StreamId::kSelfCheck);
  std::string string(300'000, 0);
  for (size_t i = 0; i < string.size(); ++i) {
    string[i] = static_cast<char>(random.UniformBelow(i, 256));
  }
  const std::vector<StringKernel> kernels = {{StringMeasure::kSpectrum, StringUnit::kByte, 8},
                                             {StringMeasure::kJaccard, StringUnit::kByte, 9},
                                             {StringMeasure::kJaccard, StringUnit::kByte, 8}};
  EXPECT_EQ(IndexedBytes(kernels, 300'000), 600'000);
  const StringIndex index(kernels, {&string});
  EXPECT_GT(index.memory_bytes(), 10 * 600'000);
  EXPECT_LE(index.memory_bytes(), StringIndex::kBytesPerUnit * 600'000);
}

// A Gram matrix has no negative eigenvalue, up to rounding. This checks all values of the matrix at
// once.
TEST(StringKernelTest, GramMatricesArePositiveSemidefinite) {
  const auto texts = std::make_shared<const std::vector<std::string>>(Texts(60));
  Matrix<double> places(60, 1);
  for (int64_t i = 0; i < 60; ++i) places(i, 0) = static_cast<double>(i);
  const std::vector<double> norms = SquaredNorms(places.view());
  for (const char* text : {"spectrum(n=2)", "jaccard(n=2)", "jaccard(n=1, unit=word)"}) {
    Matrix<double> block(60, 60);
    KernelBlock(KernelProgram::Compile(KernelExpression::Parse(text)->Over(texts)), places.view(),
                norms, places.view(), norms, block.view());
    double trace = 0;
    for (int64_t i = 0; i < 60; ++i) trace += block(i, i);
    const std::vector<double> eigenvalues = SymmetricEigenvalues(block.view()).value();
    // Eigenvalues have an error of some eps of the largest eigenvalue, which is at most the trace.
    EXPECT_GE(eigenvalues.front(), -60 * 0x1p-52 * trace) << text;
  }
}

double ValueOf(const StringKernel& kernel, const std::string& x, const std::string& y) {
  NgramCounts scratch;
  double value = 0, self = 0;
  double* const out = &value;
  StringIndex({kernel}, {&y}).Values(x, scratch, &out, &self);
  return value;
}

TEST(StringKernelTest, GoldenValues) {
  const StringKernel trigrams{StringMeasure::kSpectrum, StringUnit::kCharacter, 3};
  // "banana" contains ban once, ana twice and nan once, so the value is 1·1 + 2·2 + 1·1.
  EXPECT_EQ(ValueOf(trigrams, "banana", "banana"), 6);
  EXPECT_EQ(ValueOf(trigrams, "banana", "bandana"), 3);  // common: ban 1·1 + ana 2·1
  EXPECT_EQ(ValueOf(trigrams, "\u00fcber", "\u00fcbel"), 1);
  EXPECT_EQ(ValueOf(trigrams, "ab", "ab"), 0);
  const StringKernel sets{StringMeasure::kJaccard, StringUnit::kCharacter, 3};
  // Both strings have ban and ana; together they have ban, ana, nan, and, nda, dan.
  EXPECT_EQ(ValueOf(sets, "banana", "bandana"), 2 / 6.0);
  EXPECT_EQ(ValueOf(sets, "ab", ""), 1);
  EXPECT_EQ(ValueOf(sets, "abc", ""), 0);
  const StringKernel words{StringMeasure::kJaccard, StringUnit::kWord, 1};
  EXPECT_EQ(ValueOf(words, "to be or", " not  to\tbe "), 0.5);
}

TEST(StringKernelTest, OnlyCharactersOfUtf8AreText) {
  for (const char* text :
       {"", "a\n\t", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  // In order: a continuation byte alone, two characters cut off, two overlong forms, half of a
  // surrogate pair of UTF-16, a code point over U+10FFFF, and a byte that begins no character.
  for (const char* text : {"\x80", "a\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(absl::string_view("\0a", 2)));
}

TEST(StringKernelTest, BytesThatAreNoTextAreCountedWithoutLeavingTheString) {
  NgramCounts counts;
  const std::string bad("\x80\xbf\xff\x00\xe2\x82", 6);
  for (const StringUnit unit : {StringUnit::kCharacter, StringUnit::kByte, StringUnit::kWord}) {
    counts.Count(bad, unit, 1);
    EXPECT_FALSE(counts.counts().empty());
    counts.Count("", unit, 1);
    EXPECT_TRUE(counts.counts().empty());
  }
}

KernelExpression MustParse(const std::string& text) {
  return KernelExpression::Parse(text).value();
}

TEST(StringKernelTest, ExpressionsComposeAndBlocksAreTheirValues) {
  const auto texts = std::make_shared<const std::vector<std::string>>(Texts(40));
  const KernelExpression kernel = MustParse(
      "0.5*normalize(spectrum(n=2) + 1*weight(constant=0.5)) + exp(jaccard(n=1))"
      "*jaccard(n=1, unit=word)");
  EXPECT_EQ(MustParse(kernel.ToText()).ToText(), kernel.ToText());
  EXPECT_TRUE(kernel.TakesStrings());
  EXPECT_FALSE(kernel.TakesBytes());
  EXPECT_TRUE(kernel.IsProvenPositiveSemidefinite());
  EXPECT_TRUE(MustParse("spectrum(n=4, unit=byte)").TakesBytes());
  const KernelProgram program = KernelProgram::Compile(kernel.Over(texts));
  Matrix<double> places(40, 1);
  for (int64_t i = 0; i < 40; ++i) places(i, 0) = static_cast<double>(i);
  const std::vector<double> norms = SquaredNorms(places.view());
  Matrix<double> block(40, 40);
  KernelBlock(program, places.view(), norms, places.view(), norms, block.view());
  const std::vector<double> diagonal = KernelDiagonal(program, places.view(), norms);
  const auto value = [&](const std::string& x, const std::string& y) {
    const StringKernel two{StringMeasure::kSpectrum, StringUnit::kCharacter, 2};
    const auto inner = [&](const std::string& a, const std::string& b) {
      return Naive(two, a, b) + 0.25;
    };
    const double words = Naive({StringMeasure::kJaccard, StringUnit::kWord, 1}, x, y);
    return 0.5 * inner(x, y) / std::sqrt(inner(x, x) * inner(y, y)) +
           std::exp(Naive({StringMeasure::kJaccard, StringUnit::kCharacter, 1}, x, y)) * words;
  };
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_NEAR(diagonal[i], value((*texts)[i], (*texts)[i]), 1e-13);
    for (int64_t j = 0; j < 40; ++j) {
      EXPECT_NEAR(block(i, j), value((*texts)[i], (*texts)[j]), 1e-13);
    }
  }
}

// The index of long strings is built in parts. The values must not depend on the parts.
TEST(StringKernelTest, BlocksOfLongStringsHaveTheValuesOfPairs) {
  auto texts = std::make_shared<std::vector<std::string>>(Texts(5));
  for (std::string& text : *texts) {
    const std::string piece = text + "ab";
    while (text.size() < 400'000) text += piece;
  }
  const KernelExpression kernel = MustParse("spectrum(n=3)");
  const KernelProgram program = KernelProgram::Compile(kernel.Over(texts));
  Matrix<double> places(5, 1);
  for (int64_t i = 0; i < 5; ++i) places(i, 0) = static_cast<double>(i);
  const std::vector<double> norms = SquaredNorms(places.view());
  Matrix<double> block(5, 5);
  KernelBlock(program, places.view(), norms, places.view(), norms, block.view());
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_EQ(block(i, j), ValueOf(program.strings()[0], (*texts)[i], (*texts)[j]));
    }
  }
}

TEST(StringKernelTest, ExpressionsOfStringsAndOfNumbersAreKeptApart) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"spectrum(n=3) + rbf()",
       "column 17: cannot mix string and numeric kernels: rbf takes rows of numbers, but spectrum "
       "takes strings"},
      {"linear()*jaccard(n=3)",
       "column 10: cannot mix string and numeric kernels: jaccard takes strings, but linear takes "
       "rows of numbers"},
      {"weight(gaussian=1)*jaccard(n=3)",
       "column 20: cannot mix string and numeric kernels: jaccard takes strings, but weight takes "
       "rows of numbers"},
      {"spectrum()", nullptr},
      {"spectrum(n=0)", nullptr},
      {"spectrum(n=65)", nullptr},
      {"jaccard(n=3, unit=letter)", nullptr},
  };
  for (const auto& c : cases) {
    const absl::Status status = KernelExpression::Parse(c.text).status();
    ASSERT_FALSE(status.ok()) << c.text;
    EXPECT_EQ(ReasonOf(status), "EXPRESSION_INVALID");
    if (c.message != nullptr) {
      EXPECT_EQ(status.message(), c.message);
    }
  }
}

}  // namespace
}  // namespace phimap::testing
