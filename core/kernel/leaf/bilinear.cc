#include "absl/strings/str_cat.h"
#include "core/kernel/leaf_kernel.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

constexpr Parameter kBilinearParameters[] = {
    {.name = "matrix",
     .type = ParameterType::kMatrix,
     .absent = Parameter::Absent::kNothing,
     .line = "the symmetric matrix A, row by row; give either matrix or diagonal"},
    {.name = "diagonal",
     .type = ParameterType::kNumbers,
     .absent = Parameter::Absent::kNothing,
     .line = "the diagonal of a diagonal A; give either matrix or diagonal"},
};

BilinearForm FormOf(const ParameterValues& values) {
  const bool diagonal = values.Has("diagonal");
  const CallArgument& given = values.Argument(diagonal ? "diagonal" : "matrix");
  return {.columns = static_cast<int64_t>(given.list.size()) / given.list_rows,
          .diagonal = diagonal,
          .numbers = given.list};
}

absl::Status CheckSymmetric(const ParameterValues& values) {
  const BilinearForm form = FormOf(values);
  for (int64_t i = 0; !form.diagonal && i < form.columns; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      const double lower = form.numbers[i * form.columns + j];
      const double upper = form.numbers[j * form.columns + i];
      if (lower == upper) continue;
      return ExpressionError(
          values.Argument("matrix").value_column,
          absl::StrCat("matrix of bilinear must be symmetric, but row ", i + 1, ", column ", j + 1,
                       " is ", NumberToText(lower), " and row ", j + 1, ", column ", i + 1, " is ",
                       NumberToText(upper)),
          "matrix");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBilinear(const ParsedCall& call, ParameterValues& values) {
  if (values.Has("matrix") == values.Has("diagonal")) {
    return ExpressionError(call.column(),
                           "bilinear needs exactly one of matrix=[...] and diagonal=[...]");
  }
  return CheckSymmetric(values);
}

std::optional<WrongColumns> CheckColumnsOfBilinear(const ParameterValues& values, int64_t columns) {
  const int64_t expected = FormOf(values).columns;
  if (columns == expected) return std::nullopt;
  return WrongColumns{expected, absl::StrCat("the matrix of bilinear is for rows of ",
                                             CountOf(expected, "number"))};
}

std::string WhyBilinearIsIndefinite(const ParameterValues& values) {
  const absl::Status definite = FormOf(values).CheckPositiveSemidefinite();
  return definite.ok() ? ""
                       : absl::StrCat("the matrix of bilinear is not positive semidefinite: ",
                                      definite.message());
}

}  // namespace

extern const LeafKernel kBilinearKernel;
constinit const LeafKernel kBilinearKernel = {
    .name = "bilinear",
    .formula = "xᵀAy",
    .line = "an inner product with a weight for each column, or each pair of columns",
    .parameters = kBilinearParameters,
    .check = CheckBilinear,
    .compile = [](const ParameterValues& values,
                  KernelEmitter& emitter) { emitter.PushForm(FormOf(values)); },
    .check_columns = CheckColumnsOfBilinear,
    .why_indefinite = WhyBilinearIsIndefinite,
    .dimension = [](const ParameterValues&, double columns) { return columns; },
};

}  // namespace phimap
