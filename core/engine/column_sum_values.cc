#include "core/engine/column_sum_values.h"

namespace phimap {

template <typename T>
std::unique_ptr<const PairValues<T>> ColumnSumValues<T>::Make(const KernelProgram& program,
                                                              const Matrix<T>& landmarks) {
  if (program.sums().empty()) return nullptr;
  return std::unique_ptr<const PairValues<T>>(new ColumnSumValues(program, landmarks));
}

template <typename T>
ColumnSumValues<T>::ColumnSumValues(const KernelProgram& program, const Matrix<T>& landmarks)
    : program_(program), columns_(landmarks.cols()) {
  for (const ColumnSum& sum : program_.sums()) sums_.emplace_back(sum, landmarks.view());
}

template <typename T>
void ColumnSumValues<T>::Compute(const TileRows<T>& x, T* const* values, T* const* self,
                                 EngineScratch& /*scratch*/) const {
  for (int64_t m = 0; m < count(); ++m) {
    sums_[m].Sums(x.x, x.stride, x.count, values + m * x.count);
  }
  if (self != nullptr) ComputeSelf(x, self);
}

template <typename T>
void ColumnSumValues<T>::ComputeSelf(const TileRows<T>& x, T* const* self) const {
  for (int64_t m = 0; m < count(); ++m) {
    for (int64_t i = 0; i < x.count; ++i) {
      self[m][i] = static_cast<T>(program_.sums()[m].Self(x.row(i), columns_));
    }
  }
}

template <typename T>
int64_t ColumnSumValues<T>::memory_bytes() const {
  int64_t bytes = 0;
  for (const ColumnSumRows<T>& sum : sums_) bytes += sum.memory_bytes();
  return bytes;
}

// A step of a column sum takes three operations, where a step of a product takes one.
template <typename T>
int64_t ColumnSumValues<T>::multiplications() const {
  int64_t multiplications = 0;
  for (const ColumnSumRows<T>& sum : sums_) multiplications += 3 * sum.rows() * sum.taken();
  return multiplications;
}

template class ColumnSumValues<float>;
template class ColumnSumValues<double>;

}  // namespace phimap
