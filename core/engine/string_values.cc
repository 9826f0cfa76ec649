#include "core/engine/string_values.h"

namespace phimap {
namespace {

// Cost of an n-gram of a string, in multiplications: kLookupCost to count it and look it up, and
// kPostingCost for each string of the plan that contains it.
constexpr double kLookupCost = 4000;
constexpr double kPostingCost = 100;

}  // namespace

// Memory for one string: its n-grams, and its values with the plan's strings before rounding.
template <typename T>
struct StringValues<T>::Memory {
  NgramCounts ngrams;
  std::vector<double> numbers;
  std::vector<double*> rows;
};

template <typename T>
StringValues<T>::StringValues(const std::vector<StringKernel>& kernels,
                              const std::vector<std::string>& landmarks)
    : kernels_(kernels) {
  std::vector<const std::string*> strings;
  strings.reserve(landmarks.size());
  for (const std::string& landmark : landmarks) strings.push_back(&landmark);
  index_ = StringIndex(kernels_, strings);
}

template <typename T>
void StringValues<T>::Compute(const TileRows<T>& x, T* const* values, T* const* self,
                              EngineScratch& scratch) const {
  Memory& memory = scratch.Of<Memory>();
  const int64_t landmarks = index_.strings();
  memory.numbers.resize(static_cast<size_t>(count() * (landmarks + 1)));
  memory.rows.clear();
  for (int64_t m = 0; m < count(); ++m) {
    memory.rows.push_back(memory.numbers.data() + m * landmarks);
  }
  double* const squares = memory.numbers.data() + count() * landmarks;
  for (int64_t i = 0; i < x.count; ++i) {
    index_.Values(*x.strings[i], memory.ngrams, memory.rows.data(), squares);
    for (int64_t m = 0; m < count(); ++m) {
      T* const row = values[m * x.count + i];
      for (int64_t j = 0; j < landmarks; ++j) row[j] = static_cast<T>(memory.rows[m][j]);
      if (self != nullptr) self[m][i] = static_cast<T>(squares[m]);
    }
  }
}

template <typename T>
void StringValues<T>::ComputeSelf(const TileRows<T>& x, T* const* self) const {
  NgramCounts ngrams;
  std::vector<double> squares(kernels_.size());
  for (int64_t i = 0; i < x.count; ++i) {
    StringSquares(kernels_, *x.strings[i], ngrams, squares.data());
    for (int64_t m = 0; m < count(); ++m) self[m][i] = static_cast<T>(squares[m]);
  }
}

template <typename T>
double StringValues<T>::multiplications_per_byte() const {
  return kLookupCost * index_.lookups_per_byte() + kPostingCost * index_.postings_per_byte();
}

template class StringValues<float>;
template class StringValues<double>;

}  // namespace phimap
