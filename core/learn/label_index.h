// Numbers labels, which may be any texts in any order.
#ifndef PHIMAP_CORE_LEARN_LABEL_INDEX_H_
#define PHIMAP_CORE_LEARN_LABEL_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

inline constexpr int64_t kMaxLabels = 1000;
inline constexpr int64_t kMaxLabelBytes = 256;
// Labels are taken for the target of a regression if all are numbers, there are more than
// kMaxNumericLabels different ones, and each is rare: it has at most kRareRows rows or less than
// kRareShare of the rows.
inline constexpr int64_t kMaxNumericLabels = 100;
inline constexpr int64_t kRareRows = 5;
inline constexpr double kRareShare = 0.02;

// Checks the label of row `row` of a stream. INVALID_ARGUMENT (field "labels"): LABEL_MISSING for a
// label that is empty, only blanks, or one of the words by which programs write that there is none
// (nan, NA, N/A, <NA>, null, None, in letters of either case); LABEL_TOO_LONG.
absl::Status CheckLabel(absl::string_view label, int64_t row);

// Not thread-safe.
class LabelIndex {
 public:
  // Adds the label of the next row. Errors: those of CheckLabel; CLASSES_TOO_MANY.
  absl::Status Add(absl::string_view label);

  // INVALID_ARGUMENT (field "labels"): LABELS_NOT_CLASSES if the labels look like the target of a
  // regression, of which a learner would count each value as a class of its own; LABELS_EQUAL if
  // two are the same number, such as 1 and 1.0, which would be two classes.
  absl::Status CheckClasses() const;

  int64_t rows() const { return static_cast<int64_t>(numbers_.size()); }
  int32_t class_count() const { return static_cast<int32_t>(names_.size()); }
  // The names of the classes in byte order, and for each row the index of its class in `names`.
  // Take leaves the LabelIndex empty.
  struct Classes {
    std::vector<std::string> names;
    std::vector<int32_t> numbers;
  };
  Classes Take();

 private:
  absl::Status CheckNumbers() const;

  absl::flat_hash_map<std::string, int32_t> index_;
  std::vector<std::string> names_;
  std::vector<int32_t> numbers_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LABEL_INDEX_H_
