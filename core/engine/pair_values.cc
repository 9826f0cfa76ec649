#include "core/engine/pair_values.h"

#include "core/engine/bilinear_values.h"
#include "core/engine/column_sum_values.h"

namespace phimap {
namespace {

// Makes the values of one kind; returns null if the program reads none of that kind.
template <typename T>
using MakePairValues = std::unique_ptr<const PairValues<T>> (*)(const KernelProgram& program,
                                                                const Matrix<T>& landmarks);

// All kinds of values, in the order in which a program numbers them.
template <typename T>
constexpr MakePairValues<T> kPairValueKinds[] = {
    &BilinearValues<T>::Make,
    &ColumnSumValues<T>::Make,
};

}  // namespace

template <typename T>
PairValueList<T> PairValueList<T>::Of(const KernelProgram& program, const Matrix<T>& landmarks) {
  PairValueList list;
  for (const MakePairValues<T> make : kPairValueKinds<T>) {
    auto kind = make(program, landmarks);
    if (kind != nullptr) list.kinds_.push_back(std::move(kind));
  }
  return list;
}

template <typename T>
int64_t PairValueList<T>::count() const {
  int64_t count = 0;
  for (const auto& kind : kinds_) count += kind->count();
  return count;
}

template <typename T>
void PairValueList<T>::Compute(const TileRows<T>& x, T* const* values, T* const* self,
                               EngineScratch& scratch) const {
  int64_t first = 0;
  for (const auto& kind : kinds_) {
    kind->Compute(x, values + first * x.count, self == nullptr ? nullptr : self + first, scratch);
    first += kind->count();
  }
}

template <typename T>
void PairValueList<T>::ComputeSelf(const TileRows<T>& x, T* const* self) const {
  int64_t first = 0;
  for (const auto& kind : kinds_) {
    kind->ComputeSelf(x, self + first);
    first += kind->count();
  }
}

template <typename T>
int64_t PairValueList<T>::memory_bytes() const {
  int64_t bytes = 0;
  for (const auto& kind : kinds_) bytes += kind->memory_bytes();
  return bytes;
}

template <typename T>
int64_t PairValueList<T>::multiplications() const {
  int64_t multiplications = 0;
  for (const auto& kind : kinds_) multiplications += kind->multiplications();
  return multiplications;
}

template class PairValueList<float>;
template class PairValueList<double>;

}  // namespace phimap
