// A feature map in this process: an artifact in, features and answers out, with the bits that a
// server of the same artifact gives. This is the header for programs that embed phimap; it needs no
// server, and nothing of the network.
//
//   absl::StatusOr<std::shared_ptr<const FeatureMap>> map = FeatureMap::Load(bytes, {});
//   std::vector<float> features(rows * map->output_columns());
//   const RowsView view{reinterpret_cast<const char*>(values), FloatType::kFloat32, rows, columns};
//   absl::Status mapped = (*map)->Transform(view, features.data());
//
//   if ((*map)->head() != nullptr) absl::StatusOr<Answers> answers = (*map)->Predict({}, view);
#ifndef PHIMAP_CORE_FEATURE_MAP_FEATURE_MAP_H_
#define PHIMAP_CORE_FEATURE_MAP_FEATURE_MAP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/certificate/artifact_review.h"
#include "core/engine/engine.h"
#include "core/head/head_answers.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"

namespace phimap {

// Immutable: everything that a caller sees stays as it is. Any number of threads may use it. Holds
// no lock, so that a process may fork meanwhile.
class FeatureMap {
 public:
  struct Options {
    // An artifact that may take more memory, by the bytes of its decoded and its packed form, is
    // refused before anything of it is decoded.
    int64_t max_bytes = int64_t{16} << 30;
    // Whether an artifact of a remote kernel may be loaded. Its rows are then the kernel's values
    // with each landmark, which the caller computes.
    bool kernel_values = false;
  };

  // Loads an artifact that nobody vouches for: checks all that an import into a server checks,
  // reference vectors included (core/certificate/artifact_review.h). A head and its projection are
  // packed when they are first used.
  // Errors: those of ReviewArtifact; RESOURCE_EXHAUSTED (ARTIFACT_TOO_LARGE) over max_bytes;
  //         FAILED_PRECONDITION (KERNEL_REMOTE) for a remote kernel without kernel_values. Throws
  //         std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const FeatureMap>> Load(std::string artifact,
                                                                const Options& options);

  // Returns the error of Load over max_bytes for an artifact of this size.
  static absl::Status CheckFits(int64_t artifact_bytes, int64_t max_bytes);

  // The bytes that were loaded, and their SHA-256 in hexadecimal, by which a server names them.
  const std::string& artifact() const { return artifact_; }
  const std::string& digest() const { return digest_; }
  // Texts, columns and certificate, and what is known of the head.
  const ReviewedArtifact& facts() const { return facts_; }
  // Null if the artifact has features alone.
  const HeadFacts* head() const { return facts_.head.get(); }
  int64_t input_columns() const { return facts_.input_columns; }
  int64_t output_columns() const { return facts_.output_columns; }
  FloatType serving_type() const { return facts_.serving_type; }

  // Maps rows. `features` gets rows × output_columns() numbers of the serving type; it must be
  // aligned for that type, and alias nothing. Rows are cut into tiles that up to `threads` threads
  // map, if there are enough of them. The bits depend on neither.
  // Errors: those of Engine::CheckTakes, CheckExamples and Engine::Transform, with fields as those
  //         of the API ("examples.dense.rows[3].columns[1]"). Throws std::bad_alloc.
  absl::Status Transform(const ExamplesView& rows, void* features, int threads = 1) const;

  // ρ(x) and a(x) of each row (core/plan/residual.h), of rows and the features that Transform gave.
  // `allowances` may be null.
  // Errors: FAILED_PRECONDITION (RESIDUAL_NOT_AVAILABLE) for mappings other than F2;
  //         INVALID_ARGUMENT (SELF_VALUES_MISSING) for kernel values without K(x, x).
  absl::Status Residuals(const ExamplesView& rows, const void* features, double* residuals,
                         double* allowances) const;

  // Answers rows by the head.
  // Errors: those of Transform, HeadAnswers::Check and HeadAnswers::Compute; FAILED_PRECONDITION
  //         (HEAD_MISSING). Throws std::bad_alloc.
  absl::StatusOr<Answers> Predict(const WantedAnswers& wanted, const ExamplesView& rows,
                                  int threads = 1) const;
  // What Predict answers with: names of classes, and the task. Loads the head.
  absl::StatusOr<std::shared_ptr<const HeadAnswers>> Head(bool with_features) const;

  // The engine of the features, which is packed when it is first asked for, and the residual that
  // goes with it, null for mappings other than F2. Both live as long as the map.
  absl::StatusOr<std::shared_ptr<const Engine>> engine() const;
  const Residual* residual() const { return residual_.has_value() ? &*residual_ : nullptr; }

 private:
  FeatureMap() = default;

  std::string artifact_;
  std::string digest_;
  ReviewedArtifact facts_;
  std::optional<Residual> residual_;
  // Packed when they are first used. Two threads may both pack; the first result stays.
  mutable std::atomic<std::shared_ptr<const Engine>> engine_;
  mutable std::atomic<std::shared_ptr<const HeadAnswers>> answers_;
  mutable std::atomic<std::shared_ptr<const HeadAnswers>> answers_and_features_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_FEATURE_MAP_FEATURE_MAP_H_
