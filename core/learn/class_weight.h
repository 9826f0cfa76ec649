// Weights of classes, the parameter `class_weight` of learners.
#ifndef PHIMAP_CORE_LEARN_CLASS_WEIGHT_H_
#define PHIMAP_CORE_LEARN_CLASS_WEIGHT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/parameter.h"

namespace phimap {

inline constexpr absl::string_view kClassWeightWords[] = {"balanced"};
inline constexpr Parameter kClassWeightParameter = {
    .name = "class_weight",
    .type = ParameterType::kNumbers,
    .absent = Parameter::Absent::kNothing,
    .least = 0,
    .largest = 1e12,
    .above_least = true,
    .words = kClassWeightWords,
    .line =
        "weight of each class, in the order of their names; balanced gives n/(c·n_y) to a class "
        "with n_y of the n rows, of c classes with rows (default: 1 for each)"};

// Number of rows in each class. REQUIRES: 0 <= label < class_count.
std::vector<int64_t> RowsOfClasses(absl::Span<const int32_t> labels, int32_t class_count);

// Immutable.
class ClassWeight {
 public:
  // Every class has the weight 1.
  ClassWeight() = default;
  // REQUIRES: the values have kClassWeightParameter.
  explicit ClassWeight(const ParameterValues& values);

  // Whether the weights may be other than 1.
  bool given() const { return balanced_ || !list_.empty(); }
  // Returns the weight of each class, given their numbers of rows. With `balanced`, the classes
  // that have rows have the same weight together, and a class without rows has the weight 1.
  // INVALID_ARGUMENT (LENGTH_MISMATCH, field "class_weight") if a list has another length.
  absl::StatusOr<std::vector<double>> Of(absl::Span<const int64_t> rows_of_classes) const;

 private:
  bool balanced_ = false;
  std::vector<double> list_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_CLASS_WEIGHT_H_
