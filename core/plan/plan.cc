#include "core/plan/plan.h"

#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/string_kernel.h"
#include "core/linalg/blas.h"
#include "core/plan/example_block.h"
#include "core/plan/examples.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

absl::Status Invalid(absl::string_view stage, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kPlanInvalid, stage, what);
}

absl::Status CheckDimension(absl::string_view stage, absl::string_view what, int64_t value) {
  if (value >= 1 && value <= kMaxPlanDimension) return absl::OkStatus();
  return Invalid(stage, absl::StrCat(what, ": expected 1 to ", kMaxPlanDimension, ", got ", value));
}

template <typename T>
absl::Status CheckFiniteNumbers(absl::string_view stage, absl::string_view what, const T* values,
                                int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) {
      return Invalid(stage,
                     absl::StrCat(what, "[", i, "] is ", values[i], ", expected a finite number"));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckOptionalVector(absl::string_view stage, absl::string_view what,
                                 const std::vector<T>& values, int64_t expected) {
  if (!values.empty() && static_cast<int64_t>(values.size()) != expected) {
    return Invalid(stage, absl::StrCat(what, ": expected ", CountOf(expected, "number"),
                                       " or none, got ", values.size()));
  }
  return CheckFiniteNumbers(stage, what, values.data(), values.size());
}

absl::Status CheckInput(const InputStage& input, bool of_strings) {
  if (of_strings) {
    const bool empty = input.columns == 0 && input.shift.empty() && input.scale.empty() &&
                       input.projection.empty();
    return empty ? absl::OkStatus()
                 : Invalid("input", "a plan of strings must not have an input stage");
  }
  PHIMAP_RETURN_IF_ERROR(CheckDimension("input", "columns", input.columns));
  PHIMAP_RETURN_IF_ERROR(CheckOptionalVector("input", "shift", input.shift, input.columns));
  PHIMAP_RETURN_IF_ERROR(CheckOptionalVector("input", "scale", input.scale, input.columns));
  if (input.projection.empty()) return absl::OkStatus();
  if (input.projection.rows() != input.columns) {
    return Invalid("input", absl::StrCat("projection: expected ", CountOf(input.columns, "row"),
                                         ", got ", input.projection.rows()));
  }
  PHIMAP_RETURN_IF_ERROR(CheckDimension("input", "projection columns", input.projection.cols()));
  return CheckFiniteNumbers("input", "projection", input.projection.data(),
                            input.projection.size());
}

template <typename T>
absl::Status CheckRows(const Matrix<T>& rows, int64_t columns) {
  PHIMAP_RETURN_IF_ERROR(CheckDimension("features", "rows", rows.rows()));
  if (rows.cols() != columns) {
    return Invalid("features", absl::StrCat("rows: expected ", CountOf(columns, "column"), ", got ",
                                            rows.cols()));
  }
  return CheckFiniteNumbers("features", "rows", rows.data(), rows.size());
}

template <typename T>
absl::Status CheckOps(const std::vector<KernelOp>& ops) {
  for (const KernelOp& op : ops) {
    if (std::isfinite(static_cast<T>(op.a)) && std::isfinite(static_cast<T>(op.b))) continue;
    return Invalid("features", absl::StrCat("a parameter of the kernel, ", op.a, " or ", op.b,
                                            ", does not fit into the serving type"));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckProgram(const KernelProgram& program, int64_t columns) {
  PHIMAP_RETURN_IF_ERROR(CheckOps<T>(program.ops()));
  for (const std::vector<KernelOp>& factor : program.factors()) {
    PHIMAP_RETURN_IF_ERROR(CheckOps<T>(factor));
  }
  for (const ColumnSum& sum : program.sums()) {
    if (sum.LeastColumns() > columns) {
      return Invalid("features",
                     absl::StrCat("a column sum reads ", CountOf(sum.LeastColumns(), "column"),
                                  ", expected at most ", columns));
    }
    for (const double weight : sum.weights) {
      if (std::isfinite(static_cast<T>(weight))) continue;
      return Invalid("features", absl::StrCat("a weight of a column, ", weight,
                                              ", does not fit into the serving type"));
    }
  }
  for (const BilinearForm& form : program.forms()) {
    if (form.columns == columns) continue;
    return Invalid("features", absl::StrCat("a bilinear form has ", CountOf(form.columns, "column"),
                                            ", expected ", columns));
  }
  return absl::OkStatus();
}

// One overload for each kind of stage.
template <typename T>
struct FeatureCheck {
  int64_t columns;
  absl::Status operator()(const ProductFeatures<T>& f) const {
    if (!f.program.strings().empty()) {
      return Invalid("features", "the program of a product stage must not read strings");
    }
    PHIMAP_RETURN_IF_ERROR(CheckProgram<T>(f.program, columns));
    PHIMAP_RETURN_IF_ERROR(CheckRows(f.rows, columns));
    PHIMAP_RETURN_IF_ERROR(
        CheckDimension("features", "features", f.rows.rows() * f.program.results()));
    if (!f.program.is_plain() && (f.program.uses_offsets() || f.program.results() != 1)) {
      return Invalid("features", "a composed program must read no offsets and leave one number");
    }
    const int64_t offsets = f.program.uses_offsets() ? f.rows.rows() : 0;
    if (static_cast<int64_t>(f.offsets.size()) != offsets) {
      return Invalid("features", absl::StrCat("offsets: expected ", CountOf(offsets, "number"),
                                              ", got ", f.offsets.size()));
    }
    return CheckFiniteNumbers("features", "offsets", f.offsets.data(), offsets);
  }
  absl::Status operator()(const L1Features<T>& f) const {
    if (f.program.uses_norms()) return Invalid("features", "an L1 program cannot read norms");
    if (!f.program.is_plain() || f.program.uses_offsets() || f.program.results() != 1) {
      return Invalid("features", "an L1 program must read distances alone and leave one number");
    }
    PHIMAP_RETURN_IF_ERROR(CheckProgram<T>(f.program, columns));
    return CheckRows(f.rows, columns);
  }
  absl::Status operator()(const ExpansionFeatures<T>& f) const {
    const int64_t count = f.coefficients.size();
    PHIMAP_RETURN_IF_ERROR(CheckDimension("features", "monomials", count));
    if (f.degree < 1 || f.degree > kMaxExpansionDegree ||
        static_cast<int64_t>(f.columns.size()) != count * f.degree) {
      return Invalid(
          "features",
          absl::StrCat(count, " monomials of degree ", f.degree, " list ",
                       CountOf(f.columns.size(), "column"), "; expected the degree, from 1 to ",
                       kMaxExpansionDegree, ", times the number of monomials"));
    }
    for (int64_t i = 0; i < count * f.degree; ++i) {
      const int32_t least = i % f.degree == 0 ? -1 : f.columns[i - 1];
      if (f.columns[i] < least || f.columns[i] >= columns) {
        return Invalid("features", absl::StrCat("column ", f.columns[i], " of monomial ",
                                                i / f.degree, " is out of order or out of range"));
      }
    }
    return CheckFiniteNumbers("features", "coefficients", f.coefficients.data(), count);
  }
  absl::Status operator()(const StringFeatures& f) const {
    if (f.program.strings().empty() || f.program.results() != 1) {
      return Invalid("features",
                     "a program of strings must have string kernels and leave one number");
    }
    PHIMAP_RETURN_IF_ERROR(CheckProgram<T>(f.program, columns));
    int64_t bytes = 0;
    for (const std::string& string : f.strings) {
      bytes += static_cast<int64_t>(string.size());
      if (static_cast<int64_t>(string.size()) > kMaxStringBytes) {
        return Invalid("features", absl::StrCat("a string has ", string.size(),
                                                " bytes, expected at most ", kMaxStringBytes));
      }
    }
    const int64_t indexed = IndexedBytes(f.program.strings(), bytes);
    if (indexed > kMaxIndexedBytes) {
      return Invalid("features",
                     absl::StrCat("the strings, counted once for each unit and n, take ", indexed,
                                  " bytes; expected at most ", kMaxIndexedBytes));
    }
    return CheckDimension("features", "strings", static_cast<int64_t>(f.strings.size()));
  }
  absl::Status operator()(const RemoteFeatures& f) const {
    const int64_t count = f.examples.size();
    PHIMAP_RETURN_IF_ERROR(CheckDimension("features", "examples", count));
    if (f.kind == RemoteFeatures::StoredKind::kRowNumbers) return RowNumbers(f);
    if (f.kernel.empty() || f.endpoint.empty()) {
      return Invalid("features",
                     "features of a remote kernel need the names of a kernel and an endpoint");
    }
    for (const std::string& example : f.examples) {
      const absl::Status good = ExampleBlock::CheckBytes(KindOf(f.kind), columns, example);
      if (!good.ok()) return Invalid("features", good.message());
    }
    return absl::OkStatus();
  }
  absl::Status RowNumbers(const RemoteFeatures& f) const {
    if (!f.kernel.empty() || !f.endpoint.empty()) {
      return Invalid("features", "values that come with the request have no endpoint");
    }
    if (static_cast<int64_t>(f.examples.size()) != columns) {
      return Invalid("features",
                     absl::StrCat("expected ", columns, " row numbers, got ", f.examples.size()));
    }
    for (const std::string& example : f.examples) {
      int64_t number = 0;
      if (absl::SimpleAtoi(example, &number) && number >= 0) continue;
      return Invalid("features", "a landmark's row number is not a whole number >= 0");
    }
    return absl::OkStatus();
  }
};

template <typename T>
struct ProjectionCheck {
  int64_t features;
  absl::Status Height(int64_t rows) const {
    if (rows == features) return absl::OkStatus();
    return Invalid("projection",
                   absl::StrCat("expected ", CountOf(features, "row"), ", got ", rows));
  }
  absl::Status operator()(const NoProjection&) const { return absl::OkStatus(); }
  absl::Status operator()(const TriangularProjection<T>& p) const {
    PHIMAP_RETURN_IF_ERROR(Height(p.order));
    if (p.elements.size() != p.ElementCount(p.order)) {
      return Invalid("projection", absl::StrCat("expected ", p.ElementCount(p.order),
                                                " elements, got ", p.elements.size()));
    }
    if (!p.self_values.empty() && static_cast<int64_t>(p.self_values.size()) != p.order) {
      return Invalid("projection", absl::StrCat("expected ", CountOf(p.order, "value"),
                                                " of K(a, a), got ", p.self_values.size()));
    }
    for (const double self : p.self_values) {
      if (self > 0 && std::isfinite(self)) continue;
      return Invalid("projection",
                     absl::StrCat("K(a, a) is ", self, ", expected a finite number > 0"));
    }
    return CheckFiniteNumbers("projection", "triangle", p.elements.data(), p.elements.size());
  }
  absl::Status operator()(const DenseProjection<T>& p) const {
    PHIMAP_RETURN_IF_ERROR(Height(p.matrix.rows()));
    PHIMAP_RETURN_IF_ERROR(CheckDimension("projection", "columns", p.matrix.cols()));
    return CheckFiniteNumbers("projection", "matrix", p.matrix.data(), p.matrix.size());
  }
  absl::Status operator()(const SparseProjection<T>& p) const {
    PHIMAP_RETURN_IF_ERROR(Height(p.rows));
    PHIMAP_RETURN_IF_ERROR(CheckDimension("projection", "columns", p.columns));
    PHIMAP_RETURN_IF_ERROR(Indices(p));
    return CheckFiniteNumbers("projection", "values", p.values.data(), p.values.size());
  }
  absl::Status Indices(const SparseProjection<T>& p) const {
    const int64_t count = p.values.size();
    if (static_cast<int64_t>(p.row_offsets.size()) != p.rows + 1 || p.row_offsets.front() != 0 ||
        p.row_offsets.back() != count || static_cast<int64_t>(p.column_indices.size()) != count) {
      return Invalid("projection", "sparse offsets do not fit the values");
    }
    for (int64_t k = 0; k < p.rows; ++k) {
      if (p.row_offsets[k] > p.row_offsets[k + 1] || p.row_offsets[k + 1] > count) {
        return Invalid("projection", absl::StrCat("sparse offsets fall at row ", k));
      }
      int64_t last = -1;
      for (int64_t i = p.row_offsets[k]; i < p.row_offsets[k + 1]; ++i) {
        if (p.column_indices[i] <= last || p.column_indices[i] >= p.columns) {
          return Invalid("projection",
                         absl::StrCat("sparse column ", p.column_indices[i], " of row ", k,
                                      " is out of order or out of range"));
        }
        last = p.column_indices[i];
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <typename T>
int64_t ServingStages<T>::feature_count() const {
  struct Count {
    int64_t operator()(const ProductFeatures<T>& f) const {
      return f.rows.rows() * f.program.results();
    }
    int64_t operator()(const L1Features<T>& f) const { return f.rows.rows(); }
    int64_t operator()(const RemoteFeatures& f) const { return f.examples.size(); }
    int64_t operator()(const ExpansionFeatures<T>& f) const { return f.coefficients.size(); }
    int64_t operator()(const StringFeatures& f) const { return f.strings.size(); }
  };
  return std::visit(Count{}, features);
}

template <typename T>
int64_t ServingStages<T>::output_columns() const {
  struct Columns {
    int64_t features;
    int64_t operator()(const NoProjection&) const { return features; }
    int64_t operator()(const TriangularProjection<T>& p) const { return p.order; }
    int64_t operator()(const DenseProjection<T>& p) const { return p.matrix.cols(); }
    int64_t operator()(const SparseProjection<T>& p) const { return p.columns; }
  };
  return std::visit(Columns{feature_count()}, projection);
}

template struct ServingStages<float>;
template struct ServingStages<double>;

int64_t Plan::output_columns() const {
  return std::visit([](const auto& s) { return s.output_columns(); }, stages);
}

ExampleKind KindOf(RemoteFeatures::StoredKind kind) {
  switch (kind) {
    case RemoteFeatures::StoredKind::kDense:
      return ExampleKind::kDense;
    case RemoteFeatures::StoredKind::kBytes:
      return ExampleKind::kBytes;
    case RemoteFeatures::StoredKind::kText:
      return ExampleKind::kText;
    case RemoteFeatures::StoredKind::kSparse:
      return ExampleKind::kSparse;
    case RemoteFeatures::StoredKind::kRowNumbers:
      break;
  }
  PHIMAP_CHECK(false);
}

RemoteFeatures::StoredKind StoredKindOf(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::kDense:
      return RemoteFeatures::StoredKind::kDense;
    case ExampleKind::kBytes:
      return RemoteFeatures::StoredKind::kBytes;
    case ExampleKind::kText:
      return RemoteFeatures::StoredKind::kText;
    case ExampleKind::kSparse:
      break;
  }
  return RemoteFeatures::StoredKind::kSparse;
}

absl::Status Plan::Validate() const {
  const bool of_strings = std::visit(
      [](const auto& s) {
        const auto* const remote = std::get_if<RemoteFeatures>(&s.features);
        return std::holds_alternative<StringFeatures>(s.features) ||
               (remote != nullptr && remote->of_strings());
      },
      stages);
  PHIMAP_RETURN_IF_ERROR(CheckInput(input, of_strings));
  return std::visit(
      [&](const auto& s) -> absl::Status {
        using T = typename std::decay_t<decltype(s)>::Element;
        const bool changed =
            !input.shift.empty() || !input.scale.empty() || !input.projection.empty();
        if (changed && std::holds_alternative<RemoteFeatures>(s.features)) {
          return Invalid("input", "features of a remote kernel take no shift, scale or projection");
        }
        PHIMAP_RETURN_IF_ERROR(std::visit(FeatureCheck<T>{input.output_columns()}, s.features));
        PHIMAP_RETURN_IF_ERROR(
            CheckOptionalVector("projection", "centre", s.centre, s.feature_count()));
        return std::visit(ProjectionCheck<T>{s.feature_count()}, s.projection);
      },
      stages);
}

Matrix<double> AfterInputStage(const InputStage& input, ConstMatrixView<double> rows) {
  PHIMAP_CHECK(rows.cols() == input.columns);
  Matrix<double> x = Matrix<double>::Uninit(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t k = 0; k < rows.cols(); ++k) {
      double value = rows(i, k);
      if (!input.shift.empty()) value -= input.shift[k];
      if (!input.scale.empty()) value *= input.scale[k];
      x(i, k) = value;
    }
  }
  if (input.projection.empty()) return x;
  Matrix<double> projected = Matrix<double>::Uninit(rows.rows(), input.projection.cols());
  Multiply(1, x.view(), input.projection.view(), 0, projected.view());
  return projected;
}

InputStage CopyOf(const InputStage& input) {
  return {.columns = input.columns,
          .shift = input.shift,
          .scale = input.scale,
          .projection = input.projection.Clone()};
}

}  // namespace phimap
