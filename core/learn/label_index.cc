#include "core/learn/label_index.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

absl::Status Invalid(absl::string_view reason, absl::string_view message, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason, "labels", message,
                   {{"limit", absl::StrCat(limit)}});
}

// What CSV files and data frames write for "no value". A class of one of these names would be one
// of rows whose label is unknown far more often than a class of that name.
bool IsMissing(absl::string_view label) {
  const absl::string_view text = absl::StripAsciiWhitespace(label);
  if (text.empty()) return true;
  for (const absl::string_view missing : {"nan", "NA", "N/A", "<NA>", "null", "None"}) {
    if (absl::EqualsIgnoreCase(text, missing)) return true;
  }
  return false;
}

bool IsNumber(absl::string_view label) {
  double number = 0;
  return absl::SimpleAtod(label, &number);
}

}  // namespace

absl::Status CheckLabel(absl::string_view label, int64_t row) {
  if (IsMissing(label)) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kLabelMissing, "labels",
        absl::StrCat(
            "row ", row, " of the stream (from 0) has no label: got ", Quoted(label),
            ", which stands for a missing value; leave the row out, or give it a label of its own, "
            "for example \"unknown\""),
        {{"stream_row", absl::StrCat(row)}});
  }
  if (static_cast<int64_t>(label.size()) <= kMaxLabelBytes) return absl::OkStatus();
  return Invalid(reason::kLabelTooLong,
                 absl::StrCat("row ", row, " of the stream: expected a label of at most ",
                              kMaxLabelBytes, " bytes, got ", label.size(), ": ", Quoted(label)),
                 kMaxLabelBytes);
}

absl::Status LabelIndex::Add(absl::string_view label) {
  PHIMAP_RETURN_IF_ERROR(CheckLabel(label, rows()));
  const auto found = index_.find(label);
  if (found != index_.end()) {
    numbers_.push_back(found->second);
    return absl::OkStatus();
  }
  if (class_count() >= kMaxLabels) {
    return Invalid(reason::kClassesTooMany,
                   absl::StrCat("row ", rows(), " of the stream: label ", Quoted(label),
                                " is new, but the limit of ", kMaxLabels,
                                " distinct labels is already reached; are these labels really "
                                "classes, not numeric targets?"),
                   kMaxLabels);
  }
  index_.emplace(label, class_count());
  numbers_.push_back(class_count());
  names_.emplace_back(label);
  return absl::OkStatus();
}

absl::Status LabelIndex::CheckNumbers() const {
  absl::flat_hash_map<double, int32_t> numbers;
  for (size_t i = 0; i < names_.size(); ++i) {
    double number = 0;
    if (!absl::SimpleAtod(names_[i], &number)) continue;
    const auto [other, is_new] = numbers.emplace(number, static_cast<int32_t>(i));
    if (is_new) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kLabelsEqual, "labels",
        absl::StrCat("the labels ", Quoted(names_[static_cast<size_t>(other->second)]), " and ",
                     Quoted(names_[i]),
                     " are the same number and would be two classes; write equal labels alike"));
  }
  return absl::OkStatus();
}

absl::Status LabelIndex::CheckClasses() const {
  PHIMAP_RETURN_IF_ERROR(CheckNumbers());
  if (class_count() <= kMaxNumericLabels) return absl::OkStatus();
  if (!std::all_of(names_.begin(), names_.end(), IsNumber)) return absl::OkStatus();
  std::vector<int64_t> counts(names_.size());
  for (const int32_t number : numbers_) ++counts[static_cast<size_t>(number)];
  const auto most = std::max_element(counts.begin(), counts.end());
  if (*most > kRareRows && static_cast<double>(*most) >= kRareShare * static_cast<double>(rows())) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kLabelsNotClasses, "labels",
      absl::StrCat("the labels are ", class_count(), " different numbers in ",
                   CountOf(rows(), "row"), ", the most frequent of them, ",
                   names_[static_cast<size_t>(most - counts.begin())], ", in ", *most,
                   "; this looks like the target of a regression, and learners here tell classes "
                   "apart. Cut the target into a few ranges, each with a label; if the numbers do "
                   "name classes, write them as text, for example \"class 7\""),
      {{"limit", absl::StrCat(kMaxNumericLabels)}, {"actual", absl::StrCat(class_count())}});
}

LabelIndex::Classes LabelIndex::Take() {
  std::vector<int32_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [this](int32_t a, int32_t b) { return names_[a] < names_[b]; });
  std::vector<int32_t> place(names_.size());
  Classes classes;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int32_t>(i);
    classes.names.push_back(std::move(names_[order[i]]));
  }
  classes.numbers = std::move(numbers_);
  for (int32_t& number : classes.numbers) number = place[number];
  *this = LabelIndex();
  return classes;
}

}  // namespace phimap
