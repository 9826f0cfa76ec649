// A mapping and its parameters, with a text form:
//
//   f1(landmarks=…)                          similarities to the landmarks
//   f2(landmarks=…)                          projection of φ(x) onto the landmarks' span
//   f3(landmarks=…, dimensions=…)            F2 followed by a random projection
//   random_projection(dimensions=…)          Johnson–Lindenstrauss of the inputs themselves
//   fourier(dimensions=…)                    random Fourier features
//   kpca(landmarks=…, dimensions=…)          kernel principal components
//   multiclass(classes=…, dimensions=…)      a random projection of the inputs for each class
//   polynomial(dimensions=…)                 the monomials of a polynomial kernel, if they are no
//   more
#ifndef PHIMAP_CORE_MAPPING_MAPPING_SPEC_H_
#define PHIMAP_CORE_MAPPING_MAPPING_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/rows.h"
#include "core/theory/fourier_bounds.h"

namespace phimap {

inline constexpr int64_t kMaxLandmarks = 8192;
inline constexpr int64_t kMaxDimensions = 65536;
// Of all classes together.
inline constexpr int64_t kMaxClasses = kMaxDimensions / 2;
inline constexpr int64_t kMaxPoolRows = int64_t{1} << 24;
inline constexpr double kMaxSparsify = 1e6;
inline constexpr double kMaxRounding = 1e9;

enum class MappingKind {
  kF1,
  kF2,
  kF3,
  kRandomProjection,
  kFourier,
  kKernelPca,
  kMulticlass,
  kPolynomial
};
enum class ProjectionKind { kGaussian, kSign, kSparse, kOrthonormal };
// Uniformly drawn; by randomly pivoted Cholesky; the first rows of the stream, as the user gives
// them.
enum class LandmarkPolicy { kUniform, kRandomlyPivotedCholesky, kGiven };

// "f2", "random_projection" …
absl::string_view MappingKindName(MappingKind kind);
// "gaussian" …
absl::string_view ProjectionKindName(ProjectionKind kind);
// "uniform" …
absl::string_view LandmarkPolicyName(LandmarkPolicy policy);

struct MappingSpec {
  MappingKind kind = MappingKind::kF2;
  // 0 in mappings without landmarks.
  int64_t landmarks = 0;
  // 0 in F1 and F2, which have one feature for each landmark kept.
  int64_t dimensions = 0;
  // F3 and random projections.
  ProjectionKind projection = ProjectionKind::kGaussian;
  // Fourier features.
  FourierForm form = FourierForm::kSinCos;
  bool orthogonal = false;
  // Multiclass: blocks of `dimensions` features.
  int64_t classes = 0;
  // Kernel PCA: about the mean of the landmarks in φ-space.
  bool centred = true;
  // … of a Gram matrix of which one entry in `sparsify` is kept, or of which signs alone are; and
  // with weights rounded at random at this scale, or not at all (0).
  double sparsify = 1;
  bool quantise = false;
  double rounding = 0;
  // Mappings with landmarks: the kernel is evaluated on this many random sums and differences of
  // the columns; 0: on the columns.
  int64_t input_dimensions = 0;
  // Mappings with landmarks.
  LandmarkPolicy policy = LandmarkPolicy::kUniform;
  // Mappings with landmarks, or whose kernel may ask for gamma=median; 0: DefaultPoolRows.
  int64_t pool_rows = 0;
  // nullopt: float32, or float64 where that errs too much (kServingTolerance).
  std::optional<FloatType> serving_type;

  // Whether the mapping has a parameter of this name.
  bool Has(absl::string_view parameter) const;
  bool has_landmarks() const { return Has("landmarks"); }
  // Whether the landmarks' Gram matrix is factored.
  bool has_factor() const { return kind == MappingKind::kF2 || kind == MappingKind::kF3; }
  // The first rows of the stream that are landmarks and nothing else.
  int64_t given_rows() const { return policy == LandmarkPolicy::kGiven ? landmarks : 0; }
  // Whether F(x)·F(y) stands for K(x, y), centred where centres_kernel(): not of F1, whose features
  // are similarities, nor of multiclass, where it stands for as many times as much as there are
  // classes.
  bool approximates_kernel() const {
    return kind != MappingKind::kF1 && kind != MappingKind::kMulticlass;
  }
  // Whether that kernel is K centred on the landmarks (KernelCentre).
  bool centres_kernel() const { return kind == MappingKind::kKernelPca && centred; }

  // Parses the text form. INVALID_ARGUMENT (reason BAD_EXPRESSION) names the column, counted from
  // 1, what was expected there and what stands there. The result is validated.
  static absl::StatusOr<MappingSpec> Parse(absl::string_view text);
  // Ranges and combinations; names the parameter as field, without a prefix ("landmarks").
  // UNIMPLEMENTED for what this build does not offer.
  absl::Status Validate() const;
  // Canonical text with every parameter that applies; Parse(ToText()) gives an equal spec.
  std::string ToText() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_MAPPING_SPEC_H_
