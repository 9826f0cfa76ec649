#include "core/train/training_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/certificate/artifact_review.h"
#include "core/learn/label_index.h"
#include "core/learn/learner_type.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "core/status/utf8.h"

namespace phimap {

absl::Status InvalidLabel(absl::string_view label, int64_t row, absl::string_view expected) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kLabelInvalid, "examples.labels",
                   absl::StrCat("row ", row, " of the stream (from 0): expected ", expected,
                                ", got ", Quoted(label)),
                   {{"stream_row", absl::StrCat(row)}});
}

std::optional<double> NumberIn(absl::string_view label) {
  double number = 0;
  if (!absl::SimpleAtod(label, &number) || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool IsInteger(const std::string& name) {
  int64_t number = 0;
  return absl::SimpleAtoi(name, &number) && absl::StrCat(number) == name;
}

absl::StatusOr<int32_t> ClassNames::NumberOf(absl::string_view label, int64_t row) {
  const auto found = index_.find(label);
  if (found != index_.end()) return found->second;
  if (std::ssize(names_) >= kMaxLabels) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kClassesTooMany, "examples.labels",
        absl::StrCat("row ", row, " of the stream: label ", Quoted(label),
                     " is new, but the limit of ", kMaxLabels,
                     " classes is already reached; if the labels are the target of a "
                     "regression, give the task as numbers, with ",
                     absl::StrJoin(LearnersThat(&LearnerType::learns_numbers), " or ")),
        {{"limit", absl::StrCat(kMaxLabels)}});
  }
  if (!IsUtf8(label) || !IsReadableText(label) || absl::StrContains(label, '\n')) {
    return InvalidLabel(label, row, "text in UTF-8 without control characters");
  }
  const auto number = static_cast<int32_t>(names_.size());
  index_.emplace(label, number);
  names_.emplace_back(label);
  return number;
}

bool ClassNames::integers() const { return std::all_of(names_.begin(), names_.end(), IsInteger); }

absl::Status ClassNames::CheckDifferent() const {
  absl::flat_hash_map<double, const std::string*> numbers;
  for (const std::string& name : names_) {
    const std::optional<double> number = NumberIn(name);
    if (!number.has_value()) continue;
    const auto [other, is_new] = numbers.emplace(*number, &name);
    if (is_new) continue;
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kLabelsEqual, "examples.labels",
                     absl::StrCat("the labels ", Quoted(*other->second), " and ", Quoted(name),
                                  " are the same number and would be two classes; write equal "
                                  "labels alike"));
  }
  return absl::OkStatus();
}

std::vector<int32_t> ClassNames::Places() const {
  std::vector<int32_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0);
  const bool by_value = integers();
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (by_value) return *NumberIn(names_[a]) < *NumberIn(names_[b]);
    return names_[a] < names_[b];
  });
  std::vector<int32_t> places(names_.size());
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<int32_t>(i);
  return places;
}

std::vector<std::string> ClassNames::InOrder(absl::Span<const int32_t> places) const {
  std::vector<std::string> names(names_.size());
  for (size_t i = 0; i < names_.size(); ++i) names[places[i]] = names_[i];
  return names;
}

RawSample::RawSample(int64_t columns, uint64_t seed)
    : limit_(columns == 0 || columns > kRawColumns
                 ? 0
                 : std::min(kRawRows, kRawBytes / (8 * columns + kRowOverhead))),
      stream_(seed, StreamId::kBaselineRows) {}

void RawSample::Add(const PartRow& row) {
  if (limit_ == 0) return;
  const int64_t index = seen_++;
  if (std::ssize(rows_) < limit_) {
    rows_.push_back(row);
    return;
  }
  const auto place = static_cast<int64_t>(
      stream_.UniformBelow(static_cast<uint64_t>(index), static_cast<uint64_t>(index + 1)));
  if (place < limit_) rows_[place] = row;
}

ContentRows::ContentRows(absl::Span<const PartRow> rows, ExampleKind kind, int64_t columns) {
  if (IsString(kind)) {
    StringsView view{.kind = kind, .rows = std::ssize(rows)};
    for (const PartRow& row : rows) {
      strings_.push_back(&row.content);
      view.bytes += static_cast<int64_t>(row.content.size());
    }
    view.values = strings_.data();
    examples_ = view;
    return;
  }
  numbers_ = Matrix<double>::Uninit(std::ssize(rows), columns);
  for (int64_t i = 0; i < numbers_.rows(); ++i) {
    RowFromContent(rows[i].content, columns, numbers_.row(i));
  }
  examples_ = RowsView{reinterpret_cast<const char*>(numbers_.data()), FloatType::kFloat64,
                       numbers_.rows(), columns};
}

KnownRows::KnownRows(absl::Span<const PartRow> rows, HeadTask task, bool weighted) {
  for (const PartRow& row : rows) {
    if (task == HeadTask::kNumbers) {
      targets.push_back(row.label);
    } else {
      labels.push_back(static_cast<int32_t>(row.label));
    }
    if (weighted) weights.push_back(row.weight);
  }
}

Standardizer::Standardizer(ConstMatrixView<double> rows)
    : shift_(static_cast<size_t>(rows.cols())), scale_(static_cast<size_t>(rows.cols()), 1.0) {
  const auto n = static_cast<double>(rows.rows());
  for (int64_t j = 0; j < rows.cols(); ++j) {
    for (int64_t i = 0; i < rows.rows(); ++i) shift_[j] += rows(i, j) / n;
    double variance = 0;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      variance += (rows(i, j) - shift_[j]) * (rows(i, j) - shift_[j]) / n;
    }
    if (variance > 0) scale_[j] = 1 / std::sqrt(variance);
    mean_variance_ += variance / static_cast<double>(rows.cols());
  }
}

Matrix<double> Standardizer::Of(ConstMatrixView<double> rows) const {
  Matrix<double> out = Matrix<double>::Uninit(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < rows.cols(); ++j) out(i, j) = (rows(i, j) - shift_[j]) * scale_[j];
  }
  return out;
}

}  // namespace phimap
