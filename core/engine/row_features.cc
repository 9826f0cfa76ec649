// Features of a row alone, without landmarks: monomials of its columns, and the row itself.
#include <algorithm>

#include "core/engine/stages.h"

namespace phimap {
namespace {

// Features that are monomials of the columns.
template <typename T>
class ExpansionRunner final : public FeatureRunner<T> {
 public:
  explicit ExpansionRunner(const ExpansionFeatures<T>& expansion) : expansion_(expansion) {}

  // Multiplies factor by factor, in the order of the columns.
  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& /*scratch*/) const override {
    const int32_t* const columns = expansion_.columns.data();
    const int64_t features = this->features();
    for (int64_t i = 0; i < x.count; ++i) {
      const T* const row = x.row(i);
      for (int64_t j = 0; j < features; ++j) {
        T value = expansion_.coefficients[j];
        for (int64_t k = j * expansion_.degree; k < (j + 1) * expansion_.degree; ++k) {
          if (columns[k] >= 0) value *= row[columns[k]];
        }
        z[i][j] = value;
      }
    }
    if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features, finite);
  }

  int64_t features() const override { return static_cast<int64_t>(expansion_.coefficients.size()); }
  int64_t memory_bytes() const override {
    return static_cast<int64_t>(expansion_.columns.size() * sizeof(int32_t) +
                                expansion_.coefficients.size() * sizeof(T));
  }
  int64_t multiplications() const override {
    return static_cast<int64_t>(expansion_.columns.size());
  }

 private:
  const ExpansionFeatures<T> expansion_;
};

// Features that are the rows themselves: values of a remote kernel, which were computed elsewhere.
template <typename T>
class RemoteRunner final : public FeatureRunner<T> {
 public:
  explicit RemoteRunner(int64_t features) : features_(features) {}

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& /*scratch*/) const override {
    for (int64_t i = 0; i < x.count; ++i) std::copy_n(x.row(i), features_, z[i]);
    if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features_, finite);
  }

  int64_t features() const override { return features_; }
  int64_t memory_bytes() const override { return 0; }
  int64_t multiplications() const override { return features_; }

 private:
  const int64_t features_;
};

}  // namespace

template <typename T>
LoadedFeatures<T> LoadFeatures(const ExpansionFeatures<T>& features) {
  return std::make_unique<const ExpansionRunner<T>>(features);
}

template <typename T>
LoadedFeatures<T> LoadFeatures(const RemoteFeatures& features) {
  return std::make_unique<const RemoteRunner<T>>(static_cast<int64_t>(features.examples.size()));
}

template LoadedFeatures<float> LoadFeatures(const ExpansionFeatures<float>&);
template LoadedFeatures<double> LoadFeatures(const ExpansionFeatures<double>&);
template LoadedFeatures<float> LoadFeatures<float>(const RemoteFeatures&);
template LoadedFeatures<double> LoadFeatures<double>(const RemoteFeatures&);

}  // namespace phimap
