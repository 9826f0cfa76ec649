#include "core/kernel/leaf/columns.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/kernel/leaf/gamma_parameter.h"
#include "core/status/words.h"

namespace phimap {
namespace {

bool Given(const ParameterValues& values, absl::string_view name) {
  return values.Knows(name) && values.Has(name);
}

// Returns the sum over `columns`, or over as many columns as there are `scales`. A scale s gives
// its column the weight 1/s^power.
ColumnSum SumOver(ColumnTerm term, int power, const ParameterValues& values) {
  ColumnSum sum{.term = term};
  if (Given(values, "columns")) {
    sum.first = values.FirstColumn("columns");
    sum.weights.assign(static_cast<size_t>(values.EndColumn("columns") - sum.first), 1.0);
  }
  if (!Given(values, "scales")) return sum;
  sum.weights.clear();
  for (const double scale : values.Numbers("scales")) {
    sum.weights.push_back(power == 2 ? 1 / scale / scale : 1 / scale);
  }
  return sum;
}

}  // namespace

bool IsOfWholeRows(const ParameterValues& values) {
  return !Given(values, "columns") && !Given(values, "scales");
}

absl::Status CheckColumnChoice(const ParsedCall& call, ParameterValues& values) {
  if (IsOfWholeRows(values)) return absl::OkStatus();
  if (Given(values, "columns") && Given(values, "scales")) {
    const auto scales = static_cast<int64_t>(values.Numbers("scales").size());
    const int64_t columns = values.EndColumn("columns") - values.FirstColumn("columns");
    if (scales != columns) {
      return ExpressionError(
          values.Argument("scales").value_column,
          absl::StrCat("scales of ", call.name(), " needs a number for each column: expected ",
                       columns, " for columns=", values.Argument("columns").ValueText(), ", got ",
                       scales),
          "scales");
    }
  }
  for (const absl::string_view word : kGammaWords) {
    if (!values.AnyNumberIs(word)) continue;
    return ExpressionError(
        call.column(),
        absl::StrCat("gamma=", word, " of ", call.name(),
                     " is computed over whole rows and cannot be combined with ",
                     Given(values, "scales") ? "scales" : "columns",
                     "; expected a number, for instance 1/(number of columns) if the columns are "
                     "standardised"),
        "gamma");
  }
  return absl::OkStatus();
}

absl::Status CheckScales(const ParsedCall& call, double gamma, ParameterValues& values) {
  if (Given(values, "scales") && call.Take("gamma") == nullptr) values.Resolve(kScaleWord, gamma);
  return CheckColumnChoice(call, values);
}

std::optional<WrongColumns> CheckColumnsOfChoice(absl::string_view name,
                                                 const ParameterValues& values, int64_t columns) {
  if (Given(values, "columns")) {
    const int64_t least = values.EndColumn("columns");
    if (columns >= least) return std::nullopt;
    return WrongColumns{
        least, absl::StrCat("columns=", values.Argument("columns").ValueText(), " of ", name,
                            " is for rows of at least ", CountOf(least, "number"))};
  }
  if (!Given(values, "scales")) return std::nullopt;
  const auto scales = static_cast<int64_t>(values.Numbers("scales").size());
  if (columns == scales) return std::nullopt;
  return WrongColumns{
      scales, absl::StrCat("scales of ", name, " is for rows of ", CountOf(scales, "number"))};
}

KernelOp ProductOp(const ParameterValues& values, KernelEmitter& emitter) {
  if (IsOfWholeRows(values)) return {.code = KernelOpCode::kPushProduct};
  return ColumnSumOp(ColumnTerm::kProduct, values, emitter);
}

KernelOp SquaredDistanceOp(const ParameterValues& values, KernelEmitter& emitter) {
  if (IsOfWholeRows(values)) return {.code = KernelOpCode::kPushSquaredDistance};
  return SquaredDifferencesOp(values, emitter);
}

KernelOp SquaredDifferencesOp(const ParameterValues& values, KernelEmitter& emitter) {
  return emitter.ColumnSumOp(SumOver(ColumnTerm::kSquaredDifference, 2, values));
}

KernelOp AbsoluteDistanceOp(const ParameterValues& values, KernelEmitter& emitter) {
  if (IsOfWholeRows(values)) return {.code = KernelOpCode::kPushL1Distance};
  return emitter.ColumnSumOp(SumOver(ColumnTerm::kAbsoluteDifference, 1, values));
}

KernelOp ColumnSumOp(ColumnTerm term, const ParameterValues& values, KernelEmitter& emitter) {
  return emitter.ColumnSumOp(SumOver(term, 1, values));
}

bool SurvivesOnWholeRows(const ParameterValues& values) { return IsOfWholeRows(values); }

bool IsOnColumn(const ParameterValues& values, int64_t column) {
  return !Given(values, "columns") ||
         (column >= values.FirstColumn("columns") && column < values.EndColumn("columns"));
}

double ColumnFactor(const ParameterValues& values, int64_t column) {
  if (!IsOnColumn(values, column)) return 0;
  const int64_t first = Given(values, "columns") ? values.FirstColumn("columns") : 0;
  return Given(values, "scales") ? 1 / values.Numbers("scales")[column - first] : 1;
}

double CountColumns(const ParameterValues& values, double columns) {
  if (!Given(values, "columns")) return columns;
  return static_cast<double>(values.EndColumn("columns") - values.FirstColumn("columns"));
}

}  // namespace phimap
