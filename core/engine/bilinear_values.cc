#include "core/engine/bilinear_values.h"

namespace phimap {

template <typename T>
std::unique_ptr<const PairValues<T>> BilinearValues<T>::Make(const KernelProgram& program,
                                                             const Matrix<T>& landmarks) {
  if (program.forms().empty()) return nullptr;
  return std::unique_ptr<const PairValues<T>>(new BilinearValues(program, landmarks));
}

template <typename T>
BilinearValues<T>::BilinearValues(const KernelProgram& program, const Matrix<T>& landmarks)
    : program_(program) {
  std::vector<double> applied(landmarks.cols());
  for (const BilinearForm& form : program_.forms()) {
    Matrix<T> rows = Matrix<T>::Uninit(landmarks.rows(), landmarks.cols());
    for (int64_t j = 0; j < landmarks.rows(); ++j) {
      form.Apply(landmarks.row(j), applied.data());
      for (int64_t k = 0; k < landmarks.cols(); ++k) rows(j, k) = static_cast<T>(applied[k]);
    }
    applied_.push_back(PanelMatrix<T>::PackTransposed(rows.view()));
  }
}

template <typename T>
void BilinearValues<T>::Compute(const TileRows<T>& x, T* const* values, T* const* self,
                                EngineScratch& /*scratch*/) const {
  for (int64_t m = 0; m < count(); ++m) {
    applied_[m].Multiply(x.x, x.stride, x.count, values + m * x.count);
  }
  if (self != nullptr) ComputeSelf(x, self);
}

template <typename T>
void BilinearValues<T>::ComputeSelf(const TileRows<T>& x, T* const* self) const {
  for (int64_t m = 0; m < count(); ++m) {
    for (int64_t i = 0; i < x.count; ++i) {
      self[m][i] = static_cast<T>(program_.forms()[m].Square(x.row(i)));
    }
  }
}

template <typename T>
int64_t BilinearValues<T>::memory_bytes() const {
  int64_t bytes = 0;
  for (const PanelMatrix<T>& applied : applied_) bytes += applied.memory_bytes();
  return bytes;
}

template <typename T>
int64_t BilinearValues<T>::multiplications() const {
  int64_t multiplications = 0;
  for (const PanelMatrix<T>& applied : applied_) multiplications += applied.multiplications();
  return multiplications;
}

template class BilinearValues<float>;
template class BilinearValues<double>;

}  // namespace phimap
