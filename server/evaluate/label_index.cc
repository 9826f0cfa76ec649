#include "server/evaluate/label_index.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

absl::Status Invalid(absl::string_view reason, absl::string_view message, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason, "labels", message,
                   {{"limit", absl::StrCat(limit)}});
}

}  // namespace

absl::Status LabelIndex::Add(absl::string_view label) {
  if (static_cast<int64_t>(label.size()) > kMaxLabelBytes) {
    return Invalid("LABEL_TOO_LONG",
                   absl::StrCat("row ", rows(), " of the stream: expected a label of at most ",
                                kMaxLabelBytes, " bytes, got ", label.size(), ": ", Quoted(label)),
                   kMaxLabelBytes);
  }
  const auto found = index_.find(label);
  if (found != index_.end()) {
    numbers_.push_back(found->second);
    return absl::OkStatus();
  }
  if (class_count() >= kMaxLabels) {
    return Invalid("CLASSES_TOO_MANY",
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
