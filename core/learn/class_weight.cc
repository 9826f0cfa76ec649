#include "core/learn/class_weight.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {

std::vector<int64_t> RowsOfClasses(absl::Span<const int32_t> labels, int32_t class_count) {
  std::vector<int64_t> rows(static_cast<size_t>(class_count));
  for (const int32_t label : labels) ++rows[label];
  return rows;
}

ClassWeight::ClassWeight(const ParameterValues& values) {
  if (!values.Has(kClassWeightParameter.name)) return;
  balanced_ = values.Word(kClassWeightParameter.name) == kClassWeightWords[0];
  list_ = values.Numbers(kClassWeightParameter.name);
}

absl::StatusOr<std::vector<double>> ClassWeight::Of(
    absl::Span<const int64_t> rows_of_classes) const {
  const size_t classes = rows_of_classes.size();
  std::vector<double> weights(classes, 1.0);
  if (!list_.empty()) {
    if (list_.size() == classes) return list_;
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kLengthMismatch,
                     kClassWeightParameter.name,
                     absl::StrCat("expected a weight for each of the ", classes,
                                  " classes, in the order of their names, got ", list_.size()),
                     {{"expected", absl::StrCat(classes)}, {"actual", absl::StrCat(list_.size())}});
  }
  if (!balanced_) return weights;
  const auto rows = static_cast<double>(
      std::accumulate(rows_of_classes.begin(), rows_of_classes.end(), int64_t{0}));
  const auto present = static_cast<double>(std::count_if(
      rows_of_classes.begin(), rows_of_classes.end(), [](int64_t n) { return n > 0; }));
  for (size_t y = 0; y < classes; ++y) {
    if (rows_of_classes[y] == 0) continue;
    weights[y] = rows / (present * static_cast<double>(rows_of_classes[y]));
  }
  return weights;
}

}  // namespace phimap
