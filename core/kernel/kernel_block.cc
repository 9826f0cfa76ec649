#include "core/kernel/kernel_block.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/kernel/column_sum_rows.h"
#include "core/kernel/kernel_evaluator.h"
#include "core/kernel/string_kernel.h"
#include "core/linalg/blas.h"
#include "core/linalg/panel_product.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {

std::vector<double> SquaredNorms(ConstMatrixView<double> x) {
  std::vector<double> norms(x.rows());
  for (int64_t i = 0; i < x.rows(); ++i) {
    const double* row = x.row(i);
    double sum = 0;
    for (int64_t k = 0; k < x.cols(); ++k) sum += row[k] * row[k];
    norms[i] = sum;
  }
  return norms;
}

namespace {

// Values of n rows of x: row m of `values` holds the n values of factor, form or string kernel m.
struct RowValues {
  Matrix<double> values;
  std::vector<const double*> pointers;

  void Allocate(size_t count, int64_t rows) {
    values = Matrix<double>(static_cast<int64_t>(count), rows);
    for (size_t m = 0; m < count; ++m) pointers.push_back(values.row(static_cast<int64_t>(m)));
  }
};

// Returns the strings whose indices x holds, one index in each row.
std::vector<const std::string*> StringsOf(const KernelProgram& program, ConstMatrixView<double> x) {
  PHIMAP_CHECK(program.string_table() != nullptr && x.cols() == 1);
  std::vector<const std::string*> strings;
  for (int64_t i = 0; i < x.rows(); ++i) {
    const auto place = static_cast<size_t>(x(i, 0));
    PHIMAP_CHECK(place < program.string_table()->size());
    strings.push_back(&(*program.string_table())[place]);
  }
  return strings;
}

// Returns k_m(x, x) of each string, for each string kernel m.
RowValues SelfStrings(const KernelProgram& program, ConstMatrixView<double> x) {
  RowValues self;
  self.Allocate(program.strings().size(), x.rows());
  NgramCounts scratch;
  std::vector<double> squares(program.strings().size());
  const std::vector<const std::string*> strings = StringsOf(program, x);
  for (int64_t i = 0; i < x.rows(); ++i) {
    StringSquares(program.strings(), *strings[i], scratch, squares.data());
    for (size_t m = 0; m < squares.size(); ++m) {
      self.values(static_cast<int64_t>(m), i) = squares[m];
    }
  }
  return self;
}

// Returns how many strings, from `first` on, to index at a time. The number is limited because an
// index takes far more memory than its strings.
int64_t IndexedAtOnce(const std::vector<StringKernel>& kernels,
                      const std::vector<const std::string*>& strings, int64_t first) {
  int64_t bytes = 0;
  int64_t end = first;
  while (end < static_cast<int64_t>(strings.size())) {
    bytes += IndexedBytes(kernels, static_cast<int64_t>(strings[end]->size()));
    if (bytes > kMaxBlockIndexedBytes && end > first) break;
    ++end;
  }
  return end - first;
}

// Returns k_m(x_i, z_j) of all pairs, for each string kernel m.
std::vector<Matrix<double>> StringValues(const KernelProgram& program, ConstMatrixView<double> x,
                                         ConstMatrixView<double> z) {
  std::vector<Matrix<double>> values;
  for (size_t m = 0; m < program.strings().size(); ++m) {
    values.push_back(Matrix<double>::Uninit(x.rows(), z.rows()));
  }
  const std::vector<const std::string*> of_x = StringsOf(program, x);
  const std::vector<const std::string*> of_z = StringsOf(program, z);
  NgramCounts scratch;
  std::vector<double*> out(values.size());
  std::vector<double> self(values.size());
  for (int64_t first = 0; first < z.rows();) {
    const int64_t count = IndexedAtOnce(program.strings(), of_z, first);
    const StringIndex index(program.strings(),
                            {of_z.begin() + first, of_z.begin() + first + count});
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (size_t m = 0; m < values.size(); ++m) out[m] = values[m].row(i) + first;
      index.Values(*of_x[i], scratch, out.data(), self.data());
    }
    first += count;
  }
  return values;
}

// Returns xᵀA_m x of each row for each form m, followed by the column sums of each row with itself.
// For strings, returns SelfStrings.
RowValues SelfForms(const KernelProgram& program, ConstMatrixView<double> x) {
  RowValues forms;
  if (!program.strings().empty()) return SelfStrings(program, x);
  forms.Allocate(program.form_count(), x.rows());
  for (size_t m = 0; m < program.forms().size(); ++m) {
    PHIMAP_CHECK(program.forms()[m].columns == x.cols());
    double* const out = forms.values.row(static_cast<int64_t>(m));
    for (int64_t i = 0; i < x.rows(); ++i) out[i] = program.forms()[m].Square(x.row(i));
  }
  for (size_t m = 0; m < program.sums().size(); ++m) {
    double* const out = forms.values.row(static_cast<int64_t>(program.forms().size() + m));
    for (int64_t i = 0; i < x.rows(); ++i) out[i] = program.sums()[m].Self(x.row(i), x.cols());
  }
  return forms;
}

// Returns f_m of the first `rows` rows for each factor m, computed from their SelfForms and norms.
RowValues Factors(const KernelProgram& program, const RowValues& forms,
                  const std::vector<double>& norms, int64_t rows) {
  RowValues factors;
  if (program.factors().empty()) return factors;
  factors.Allocate(program.factors().size(), rows);
  std::vector<double*> out;
  for (int64_t m = 0; m < factors.values.rows(); ++m) out.push_back(factors.values.row(m));
  EvaluateFactors(program, norms.data(), forms.pointers.data(), rows, out.data());
  return factors;
}

// Like Factors, but computes the forms of the rows itself, for callers that have no other use for
// them.
RowValues FactorsOf(const KernelProgram& program, ConstMatrixView<double> x,
                    const std::vector<double>& norms) {
  if (program.factors().empty()) return {};
  return Factors(program, SelfForms(program, x), norms, x.rows());
}

// Returns x_i·A z_j for all pairs.
Matrix<double> FormProducts(const BilinearForm& form, ConstMatrixView<double> x,
                            ConstMatrixView<double> z) {
  PHIMAP_CHECK(form.columns == z.cols());
  Matrix<double> applied = Matrix<double>::Uninit(z.rows(), z.cols());
  for (int64_t j = 0; j < z.rows(); ++j) form.Apply(z.row(j), applied.row(j));
  Matrix<double> out = Matrix<double>::Uninit(x.rows(), z.rows());
  MultiplyTransposed(1, x, std::as_const(applied).view(), 0, out.view());
  return out;
}

// Returns the column sum of all pairs.
Matrix<double> ColumnSums(const ColumnSum& sum, ConstMatrixView<double> x,
                          ConstMatrixView<double> z) {
  const ColumnSumRows<double> rows(sum, z);
  Matrix<double> out = Matrix<double>::Uninit(x.rows(), z.rows());
  std::vector<double*> out_rows(static_cast<size_t>(x.rows()));
  for (int64_t i = 0; i < x.rows(); ++i) out_rows[i] = out.row(i);
  rows.Sums(x.data(), x.stride(), x.rows(), out_rows.data());
  return out;
}

Matrix<double> L1Distances(ConstMatrixView<double> x, ConstMatrixView<double> z) {
  Matrix<double> out = Matrix<double>::Uninit(x.rows(), z.rows());
  std::vector<double*> rows(x.rows());
  for (int64_t i = 0; i < x.rows(); ++i) rows[i] = out.row(i);
  PanelMatrix<double>::PackTransposed(z).L1Distances(x.data(), x.stride(), x.rows(), rows.data());
  return out;
}

}  // namespace

void KernelBlock(const KernelProgram& program, ConstMatrixView<double> x,
                 const std::vector<double>& x_norms, ConstMatrixView<double> z,
                 const std::vector<double>& z_norms, MatrixView<double> out) {
  PHIMAP_CHECK(x.cols() == z.cols() && out.rows() == x.rows() && out.cols() == z.rows());
  PHIMAP_CHECK(std::ssize(x_norms) == x.rows() && std::ssize(z_norms) >= z.rows());
  if (program.uses_products()) MultiplyTransposed(1, x, z, 0, out);
  Matrix<double> l1_distances;
  if (program.uses_l1_distances()) l1_distances = L1Distances(x, z);
  std::vector<Matrix<double>> forms;
  if (!program.strings().empty()) forms = StringValues(program, x, z);
  for (const BilinearForm& form : program.forms()) forms.push_back(FormProducts(form, x, z));
  for (const ColumnSum& sum : program.sums()) forms.push_back(ColumnSums(sum, x, z));
  const RowValues z_factors = FactorsOf(program, z, z_norms);
  const RowValues x_factors = FactorsOf(program, x, x_norms);
  std::vector<double> factors_of_x(program.factors().size());
  std::vector<const double*> forms_of_x(forms.size());
  for (int64_t i = 0; i < x.rows(); ++i) {
    KernelOperands<double> operands{.products = program.uses_products() ? out.row(i) : nullptr,
                                    .x_norm = x_norms[i],
                                    .row_norms = z_norms.data(),
                                    .l1_distances = nullptr,
                                    .forms = forms_of_x.data(),
                                    .x_factors = factors_of_x.data(),
                                    .row_factors = z_factors.pointers.data()};
    if (!l1_distances.empty()) operands.l1_distances = l1_distances.row(i);
    for (size_t m = 0; m < forms.size(); ++m) forms_of_x[m] = forms[m].row(i);
    for (size_t m = 0; m < factors_of_x.size(); ++m) factors_of_x[m] = x_factors.pointers[m][i];
    EvaluateKernel(program, operands, z.rows(), out.row(i));
  }
}

std::vector<double> KernelDiagonal(const KernelProgram& program, ConstMatrixView<double> x,
                                   const std::vector<double>& x_norms) {
  PHIMAP_CHECK(std::ssize(x_norms) == x.rows());
  std::vector<double> diagonal(x.rows());
  const RowValues forms = SelfForms(program, x);
  const RowValues factors = Factors(program, forms, x_norms, x.rows());
  EvaluateSelf(program, x_norms.data(), forms.pointers.data(), factors.pointers.data(), x.rows(),
               diagonal.data());
  return diagonal;
}

std::vector<double> StringDiagonal(const KernelProgram& program, ConstMatrixView<double> squares) {
  PHIMAP_CHECK(squares.cols() == static_cast<int64_t>(program.strings().size()));
  RowValues self;
  self.Allocate(program.strings().size(), squares.rows());
  for (int64_t i = 0; i < squares.rows(); ++i) {
    for (int64_t m = 0; m < squares.cols(); ++m) self.values(m, i) = squares(i, m);
  }
  std::vector<double> diagonal(static_cast<size_t>(squares.rows()));
  const std::vector<double> norms(diagonal.size(), 0.0);
  const RowValues factors = Factors(program, self, norms, squares.rows());
  EvaluateSelf(program, norms.data(), self.pointers.data(), factors.pointers.data(), squares.rows(),
               diagonal.data());
  return diagonal;
}

Matrix<double> SelfStringValues(const KernelProgram& program, ConstMatrixView<double> x) {
  Matrix<double> values =
      Matrix<double>::Uninit(x.rows(), static_cast<int64_t>(program.strings().size()));
  const RowValues self = SelfStrings(program, x);
  for (int64_t i = 0; i < values.rows(); ++i) {
    for (int64_t m = 0; m < values.cols(); ++m) values(i, m) = self.values(m, i);
  }
  return values;
}

absl::Status KernelGram(const KernelProgram& program, ConstMatrixView<double> x,
                        MatrixView<double> out, const TileControl& control) {
  PHIMAP_CHECK(out.rows() == x.rows() && out.cols() == x.rows());
  constexpr int64_t kTileRows = 256;
  const int64_t n = x.rows();
  const std::vector<double> norms = SquaredNorms(x);
  const std::vector<double> diagonal = KernelDiagonal(program, x, norms);
  const auto tile = [&](int64_t t) {
    const int64_t begin = t * kTileRows;
    const int64_t end = std::min(n, begin + kTileRows);
    // Computes all rows of the tile up to the diagonal of its last row. Does so in a buffer,
    // because values right of the diagonal must not be written to `out`.
    const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + end);
    Matrix<double> block = Matrix<double>::Uninit(end - begin, end);
    KernelBlock(program, x.Rows(begin, end - begin), tile_norms, x.Rows(0, end), norms,
                block.view());
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(block.row(i - begin), i, out.row(i));
      out(i, i) = diagonal[i];
    }
  };
  // Later tiles take more work, so the share of the work that is done is the square of the share
  // `f` of the tiles that are done.
  return ForEachTile(
      control.threads(), (n + kTileRows - 1) / kTileRows, [&](double f) { return control(f * f); },
      tile);
}

}  // namespace phimap
