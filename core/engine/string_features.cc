// Features that are a kernel program of string kernels with fixed strings.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/landmark_kernel.h"
#include "core/engine/pair_values.h"
#include "core/engine/stages.h"
#include "core/kernel/string_kernel.h"

namespace phimap {
namespace {

// Cost of an n-gram of a string, in multiplications: kLookupCost to count it and look it up, and
// kPostingCost for each string of the plan that contains it.
constexpr double kLookupCost = 4000;
constexpr double kPostingCost = 100;

// Values k_m(x, a_j) of each string kernel of a program. Holds an index of the landmarks, which are
// strings. Values are computed in float64 (StringIndex::Values) and rounded once to T. They have
// the layout of PairValues.
template <typename T>
class StringValues {
 public:
  StringValues(const std::vector<StringKernel>& kernels, const std::vector<std::string>& landmarks)
      : kernels_(kernels) {
    std::vector<const std::string*> strings;
    strings.reserve(landmarks.size());
    for (const std::string& landmark : landmarks) strings.push_back(&landmark);
    index_ = StringIndex(kernels_, strings);
  }

  int64_t count() const { return static_cast<int64_t>(kernels_.size()); }

  void Compute(const TileRows<T>& x, T* const* values, T* const* self,
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

  void ComputeSelf(const TileRows<T>& x, T* const* self) const {
    NgramCounts ngrams;
    std::vector<double> squares(kernels_.size());
    for (int64_t i = 0; i < x.count; ++i) {
      StringSquares(kernels_, *x.strings[i], ngrams, squares.data());
      for (int64_t m = 0; m < count(); ++m) self[m][i] = static_cast<T>(squares[m]);
    }
  }

  int64_t memory_bytes() const { return index_.memory_bytes(); }
  // The time for a string depends on the number of its n-grams, so its cost is counted per byte.
  double multiplications_per_byte() const {
    return kLookupCost * index_.lookups_per_byte() + kPostingCost * index_.postings_per_byte();
  }

 private:
  // Memory for one string: its n-grams, and its values with the plan's strings before rounding.
  struct Memory {
    NgramCounts ngrams;
    std::vector<double> numbers;
    std::vector<double*> rows;
  };

  const std::vector<StringKernel> kernels_;
  StringIndex index_;
};

template <typename T>
class StringRunner final : public FeatureRunner<T> {
 public:
  // Strings have no norms, so a program that reads a norm reads 0. Throws std::bad_alloc.
  explicit StringRunner(const StringFeatures& features)
      : values_(features.program.strings(), features.strings),
        kernel_(features.program, static_cast<int64_t>(features.strings.size())) {
    const int64_t count = static_cast<int64_t>(features.strings.size());
    kernel_.TakeNorms(std::vector<T>(static_cast<size_t>(count), T{0}));
    const int64_t factors = static_cast<int64_t>(features.program.factors().size());
    if (factors == 0) return;
    std::vector<const std::string*> strings;
    for (const std::string& string : features.strings) strings.push_back(&string);
    SelfValues<T> self;
    self.Reserve(values_.count(), factors, count);
    values_.ComputeSelf({.count = count, .strings = strings.data()}, self.pair_values());
    kernel_.TakeSelfValues(std::move(self));
  }

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override {
    Memory& memory = scratch.Of<Memory>();
    static constexpr std::array<T, kMaxTileRows> kNorms{};
    T* const* const values = memory.values.Allocate(values_.count() * x.count, kernel_.landmarks());
    memory.self.Reserve(values_.count(), static_cast<int64_t>(kernel_.program().factors().size()),
                        x.count);
    values_.Compute(x, values, memory.self.pair_values(), scratch);
    kernel_.Evaluate(
        {.rows = x.count, .norms = kNorms.data(), .pair_values = values, .self = &memory.self}, z,
        memory.row);
    if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features(), finite);
  }

  int64_t features() const override { return kernel_.features(); }
  int64_t memory_bytes() const override { return values_.memory_bytes() + kernel_.memory_bytes(); }
  int64_t multiplications() const override { return 0; }
  double multiplications_per_byte() const override { return values_.multiplications_per_byte(); }
  absl::string_view overflow_cause() const override { return kernel_.overflow_cause(); }
  absl::string_view overflow_remedy() const override {
    return "scale the kernel down, or serve in float64";
  }

 private:
  struct Memory {
    NumberRows<T> values;
    SelfValues<T> self;
    typename LandmarkKernel<T>::Memory row;
  };

  const StringValues<T> values_;
  LandmarkKernel<T> kernel_;
};

}  // namespace

template <typename T>
LoadedFeatures<T> LoadFeatures(const StringFeatures& features) {
  return std::make_unique<const StringRunner<T>>(features);
}

template LoadedFeatures<float> LoadFeatures<float>(const StringFeatures&);
template LoadedFeatures<double> LoadFeatures<double>(const StringFeatures&);

}  // namespace phimap
