#include "core/engine/pair_values.h"

#include <utility>

#include "core/kernel/bilinear_form.h"
#include "core/kernel/column_sum_rows.h"
#include "core/linalg/panel_product.h"

namespace phimap {
namespace {

// The values x·A_m a_j of each bilinear form of a program. Holds A_m a_j for each form and
// landmark, rounded once. Takes dense rows.
template <typename T>
class BilinearValues final : public PairValues<T> {
 public:
  BilinearValues(const KernelProgram& program, const Matrix<T>& landmarks) : program_(program) {
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

  int64_t count() const override { return static_cast<int64_t>(applied_.size()); }

  void Compute(const TileRows<T>& x, T* const* values, T* const* self,
               EngineScratch& /*scratch*/) const override {
    for (int64_t m = 0; m < count(); ++m) {
      applied_[m].Multiply(x.x, x.stride, x.count, values + m * x.count);
    }
    if (self != nullptr) ComputeSelf(x, self);
  }

  void ComputeSelf(const TileRows<T>& x, T* const* self) const override {
    for (int64_t m = 0; m < count(); ++m) {
      for (int64_t i = 0; i < x.count; ++i) {
        self[m][i] = static_cast<T>(program_.forms()[m].Square(x.row(i)));
      }
    }
  }

  int64_t memory_bytes() const override {
    int64_t bytes = 0;
    for (const PanelMatrix<T>& applied : applied_) bytes += applied.memory_bytes();
    return bytes;
  }

  int64_t multiplications() const override {
    int64_t multiplications = 0;
    for (const PanelMatrix<T>& applied : applied_) multiplications += applied.multiplications();
    return multiplications;
  }

 private:
  const KernelProgram program_;  // owns the forms
  std::vector<PanelMatrix<T>> applied_;
};

// Each column sum of a program for rows and landmarks. Holds the columns of the landmarks that each
// sum reads. Takes dense rows.
template <typename T>
class ColumnSumValues final : public PairValues<T> {
 public:
  ColumnSumValues(const KernelProgram& program, const Matrix<T>& landmarks)
      : program_(program), columns_(landmarks.cols()) {
    for (const ColumnSum& sum : program_.sums()) sums_.emplace_back(sum, landmarks.view());
  }

  int64_t count() const override { return static_cast<int64_t>(sums_.size()); }

  void Compute(const TileRows<T>& x, T* const* values, T* const* self,
               EngineScratch& /*scratch*/) const override {
    for (int64_t m = 0; m < count(); ++m) {
      sums_[m].Sums(x.x, x.stride, x.count, values + m * x.count);
    }
    if (self != nullptr) ComputeSelf(x, self);
  }

  void ComputeSelf(const TileRows<T>& x, T* const* self) const override {
    for (int64_t m = 0; m < count(); ++m) {
      for (int64_t i = 0; i < x.count; ++i) {
        self[m][i] = static_cast<T>(program_.sums()[m].Self(x.row(i), columns_));
      }
    }
  }

  int64_t memory_bytes() const override {
    int64_t bytes = 0;
    for (const ColumnSumRows<T>& sum : sums_) bytes += sum.memory_bytes();
    return bytes;
  }

  // A step of a column sum takes three operations, where a step of a product takes one.
  int64_t multiplications() const override {
    int64_t multiplications = 0;
    for (const ColumnSumRows<T>& sum : sums_) multiplications += 3 * sum.rows() * sum.taken();
    return multiplications;
  }

 private:
  const KernelProgram program_;  // owns the sums
  const int64_t columns_;
  std::vector<ColumnSumRows<T>> sums_;
};

}  // namespace

// The kinds follow one another in the order in which a program numbers them.
template <typename T>
PairValueList<T> PairValueList<T>::Of(const KernelProgram& program, const Matrix<T>& landmarks) {
  PairValueList list;
  if (!program.forms().empty()) {
    list.kinds_.push_back(std::make_unique<const BilinearValues<T>>(program, landmarks));
  }
  if (!program.sums().empty()) {
    list.kinds_.push_back(std::make_unique<const ColumnSumValues<T>>(program, landmarks));
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
