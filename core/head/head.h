// A head turns the features of a version into answers: classes, or a number. It is an optional part
// of an artifact; docs/formats.md describes its bytes. head_program.h executes it.
//
// Scores are linear in the features: s = F(x)·V + b. One score stands for two classes (over 0:
// class 1) and for a number (the number itself, in the target's units); c >= 3 classes have c
// scores, and the highest is the answer.
#ifndef PHIMAP_CORE_HEAD_HEAD_H_
#define PHIMAP_CORE_HEAD_HEAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/head/conformal.h"
#include "core/head/link.h"
#include "core/linalg/matrix.h"

namespace phimap {

// The numbers are part of the artifact format.
enum class HeadTask : uint8_t { kClasses = 1, kNumbers = 2 };

// Longest name of a class, in bytes.
inline constexpr int64_t kMaxClassNameBytes = 256;

// The uncertainty of a number by the Gaussian process whose mean ridge computes. Its variance at x
// is scale·(ρ(x) + noise·‖F(x)·R⁻¹‖²), where RᵀR = G + noise·I, G is the Gram matrix of the
// training features, ρ(x) = K(x, x) − ‖F(x)‖², and noise is ridge's alpha; an observation has
// scale·noise more. `scale` is (yᵀy − wᵀΦᵀy)/(n·alpha), in squared units of the target.
struct HeadVariance {
  double noise = 0;
  double scale = 0;
  // R⁻¹, upper triangular and packed as TriangularProjection has it; d(d + 1)/2 numbers, with d
  // positive ones in the diagonal.
  AlignedArray<double> inverse_factor;

  bool empty() const { return inverse_factor.size() == 0; }
};

struct Head {
  HeadTask task = HeadTask::kClasses;
  // Canonical text of the learner, with every parameter resolved.
  std::string learner_text;
  // SHA-256, in hexadecimal, of the artifact without its head: the version that it was trained on.
  std::string features_digest;
  // Names of the classes, in the order of their numbers; empty for numbers.
  std::vector<std::string> classes;
  // Whether the names are integers, as a client may want to answer with numbers.
  bool integer_classes = false;
  // V, features × scores, and b, one for each score. Float64: they are rounded once, when they are
  // folded into the serving type.
  Matrix<double> weights;
  std::vector<double> intercepts;
  // Whether the projection stage and V are executed as one product (head_program.h). They are not
  // where that changed more than a share .001 of the answers (folding.h).
  bool folded = false;
  Link link;
  // Empty if no rows were left to calibrate sets or intervals.
  CalibrationScores calibration;
  // Has a section of its own in an artifact, because only few answers need its d²/2 numbers.
  // EncodeHead leaves it out, and DecodeHead returns none.
  HeadVariance variance;
  // Bytes that only core/head/report.cc writes and reads.
  std::string report;

  // The number of scores of a row.
  int64_t scores() const { return static_cast<int64_t>(intercepts.size()); }
  // Bytes of the longest name of a class; 0 for numbers.
  int64_t longest_class_name() const;

  // Returns INVALID_ARGUMENT (PLAN_INVALID) with the part as its field unless shapes agree with a
  // plan of `features` features, every number is finite, names are texts of 1 to 256 bytes and no
  // two of them are equal, and the parts fit the task.
  absl::Status Validate(int64_t features) const;
};

// Returns the class that the scores of one row stand for: of one score, 1 if it is over 0 and
// otherwise 0; of more scores, the first of the highest. REQUIRES: at least one score.
int32_t ClassOf(absl::Span<const double> scores);

// What people are told of a head.
struct HeadFacts {
  HeadTask task = HeadTask::kClasses;
  std::string learner_text;
  std::string features_digest;
  std::vector<std::string> classes;
  bool folded = false;
  bool has_probabilities = false;
  bool has_variance = false;
  int64_t calibration_rows = 0;
  // Whether sets hold within each class (conformal.h).
  bool class_conditional = false;
  std::string report;
};
// `has_variance`: whether the artifact has the head's variance, which may not be in `head`.
HeadFacts FactsOf(const Head& head, bool has_variance);

// Encodes a head, without its variance, as the bytes of an artifact's section. Equal heads give
// equal bytes. REQUIRES: the head is valid.
std::string EncodeHead(const Head& head);
// Decodes bytes that nobody vouches for. DATA_LOSS with the offset from their start, the expected
// and the actual value if they are damaged, UNIMPLEMENTED for a task or link of a newer release.
// Bounds every size before memory for it is allocated. The head is valid for a plan of as many
// features as its weights have rows.
absl::StatusOr<Head> DecodeHead(absl::string_view bytes);

// Encode and decode the variance of a head in the same way; "" stands for none.
std::string EncodeVariance(const HeadVariance& variance);
absl::StatusOr<HeadVariance> DecodeVariance(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_HEAD_H_
