// A mapping and the values of its parameters, with a text form: "f2(landmarks=500)".
// family.h lists the families, and mapping_parameters.h the parameters.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_SPEC_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/landmark/count_rule.h"
#include "core/landmark/landmark_policy.h"
#include "core/mapping/spec/family.h"
#include "core/plan/rows.h"
#include "core/theory/fourier_bounds.h"

namespace phimap {

inline constexpr int64_t kMaxLandmarks = 8192;
// Maximum number of features of a row, over all classes together, and of projected columns.
inline constexpr int64_t kMaxDimensions = 65536;
// Maximum number of classes. It leaves at least two features for each class.
inline constexpr int64_t kMaxClasses = kMaxDimensions / 2;
inline constexpr int64_t kMaxPoolRows = int64_t{1} << 24;
inline constexpr double kMaxSparsify = 1e6;
inline constexpr double kMaxRounding = 1e9;

enum class ProjectionKind { kGaussian, kSign, kSparse, kOrthonormal };

// Parameters that the mapping does not have keep their default values.
struct MappingSpec {
  // Never null.
  const Family* kind = &DefaultFamily();
  // The number of landmarks, or the largest number if `count_rule` finds it.
  int64_t landmarks = 0;
  // The rule of landmarks=auto(residual=0.01), and the value of its goal. Null if the number of
  // landmarks is given.
  const CountRule* count_rule = nullptr;
  double goal = 0;
  int64_t dimensions = 0;
  ProjectionKind projection = ProjectionKind::kGaussian;
  FourierForm form = FourierForm::kSinCos;
  bool orthogonal = false;
  // Number of classes, each of which has a block of `dimensions` features.
  int64_t classes = 0;
  bool centred = true;
  double sparsify = 1;
  bool quantise = false;
  double rounding = 0;
  // Number of projected columns. 0 means that the kernel is evaluated on the columns themselves.
  int64_t input_dimensions = 0;
  // Never null.
  const LandmarkPolicy* policy = &DefaultLandmarkPolicy();
  // 0 means DefaultPoolRows.
  int64_t pool_rows = 0;
  // The largest number of rows that are held out for the certificate; 0 means kMaxHeldOutRows.
  int64_t held_out_rows = 0;
  // If unset: float32, or float64 if float32 is not precise enough (kServingTolerance).
  std::optional<FloatType> serving_type;

  // Whether the mapping has a parameter of this name.
  bool Has(absl::string_view parameter) const { return kind->Has(parameter); }
  bool has_landmarks() const { return Has("landmarks"); }
  // The smallest number of landmarks that a build may result in.
  int64_t least_landmarks() const { return count_rule != nullptr ? 1 : landmarks; }
  // Number of rows at the start of the stream that are used only as landmarks.
  int64_t given_rows() const { return policy->takes_first_rows ? landmarks : 0; }
  // Whether F(x)·F(y) approximates K centred on the landmarks (KernelCentre).
  bool centres_kernel() const {
    return kind->centres_kernel != nullptr && kind->centres_kernel(*this);
  }

  // Parses the text form. INVALID_ARGUMENT (reason EXPRESSION_INVALID) states the position in the
  // text, counted from 1, and the expected and actual text. The result is validated.
  static absl::StatusOr<MappingSpec> Parse(absl::string_view text);
  // Checks the ranges and combinations of the parameters. Returns INVALID_ARGUMENT with the
  // parameter as field, without a prefix ("landmarks"). The reason is FIELD_OUT_OF_RANGE,
  // PARAMETER_NOT_APPLICABLE for a parameter that the mapping does not have, or one of the
  // mapping's own.
  absl::Status Validate() const;
  // Returns the canonical text with every parameter that applies. Parse(ToText()) gives an equal
  // spec.
  std::string ToText() const;
};

// Returns INVALID_ARGUMENT (PARAMETER_NOT_APPLICABLE), such as "f2 has no parameter dimensions; it
// has landmarks, …".
absl::Status NoSuchParameter(const Family& family, absl::string_view parameter);

// Returns INVALID_ARGUMENT (FIELD_OUT_OF_RANGE). The message is `why`, followed by the range.
absl::Status ParameterOutOfRange(absl::string_view parameter, absl::string_view why, int64_t least,
                                 int64_t largest, int64_t actual);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_SPEC_H_
