#include "core/feature_map/feature_map.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/digest/sha256.h"
#include "core/head/head.h"
#include "core/linalg/tiles.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Copies of an artifact that are in memory while it is loaded: the bytes, the plan, and the packed
// plans of its features and of its head.
constexpr int64_t kCopies = 4;
// Rows of a tile, and multiplications that are worth a thread, which takes some 20 µs to start.
constexpr int64_t kTileRows = 256;
constexpr double kWorthAThread = 4e6;

// Extends the field of an error about a value to its path in a request.
absl::Status InExamples(const ExamplesView& rows, const absl::Status& status) {
  if (status.ok()) return status;
  return WithFieldPrefix(status, absl::StrCat("examples.", rows.kind_name(), "."));
}

// Stores `loaded` in `part` unless another thread was first, and returns what is there.
template <typename Part>
std::shared_ptr<const Part> Kept(std::atomic<std::shared_ptr<const Part>>& part,
                                 std::shared_ptr<const Part> loaded) {
  std::shared_ptr<const Part> none;
  return part.compare_exchange_strong(none, loaded) ? loaded : none;
}

// Computes what `engine` computes of all rows, on up to `threads` threads.
absl::Status Map(const Engine& engine, const ExamplesView& rows, char* out, int threads) {
  PHIMAP_RETURN_IF_ERROR(engine.CheckTakes(rows));
  PHIMAP_RETURN_IF_ERROR(InExamples(rows, CheckExamples(rows)));
  const int64_t row_bytes = engine.output_columns() * FloatTypeBytes(engine.serving_type());
  const auto map = [&](int64_t begin, int64_t count) {
    thread_local EngineScratch scratch;
    TransformPart part{rows.Slice(begin, count), out + begin * row_bytes, absl::OkStatus()};
    engine.Transform(absl::MakeSpan(&part, 1), scratch);
    return InExamples(rows, WithRowOffset(part.status, begin));
  };
  const int64_t tiles = (rows.rows() + kTileRows - 1) / kTileRows;
  const auto worth = static_cast<int64_t>(engine.Multiplications(rows) / kWorthAThread);
  const auto used = static_cast<int>(std::min<int64_t>({threads, tiles, worth}));
  if (used <= 1) return map(0, rows.rows());
  std::vector<absl::Status> results(static_cast<size_t>(tiles));
  PHIMAP_RETURN_IF_ERROR(ForEachTile(
      used, tiles, [](double) { return absl::OkStatus(); },
      [&](int64_t tile) {
        const int64_t begin = tile * kTileRows;
        results[static_cast<size_t>(tile)] = map(begin, std::min(kTileRows, rows.rows() - begin));
      }));
  for (const absl::Status& result : results) PHIMAP_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace

absl::Status FeatureMap::CheckFits(int64_t artifact_bytes, int64_t max_bytes) {
  if (artifact_bytes <= max_bytes / kCopies) return absl::OkStatus();
  return MakeError(
      Code::kResourceExhausted, reason::kArtifactTooLarge, "max_bytes",
      absl::StrCat("an artifact of ", artifact_bytes, " bytes takes up to ", kCopies,
                   " times as many when it is loaded; the limit is ", max_bytes),
      {{"limit", absl::StrCat(max_bytes)}, {"actual", absl::StrCat(kCopies * artifact_bytes)}});
}

absl::StatusOr<std::shared_ptr<const FeatureMap>> FeatureMap::Load(std::string artifact,
                                                                   const Options& options) {
  PHIMAP_RETURN_IF_ERROR(CheckFits(static_cast<int64_t>(artifact.size()), options.max_bytes));
  std::shared_ptr<FeatureMap> map(new FeatureMap);
  PHIMAP_ASSIGN_OR_RETURN(map->facts_, ReviewArtifact(artifact));
  PHIMAP_ASSIGN_OR_RETURN(const Artifact decoded, DecodeArtifact(artifact));
  map->artifact_ = std::move(artifact);
  map->residual_ = Residual::Of(decoded.plan, decoded.provenance);
  Sha256 hash;
  hash.Update(map->artifact_);
  map->digest_ = hash.Hex();
  const bool remote = std::visit(
      [](const auto& stages) { return std::holds_alternative<RemoteFeatures>(stages.features); },
      decoded.plan.stages);
  if (remote && !options.kernel_values) {
    return MakeError(Code::kFailedPrecondition, reason::kKernelRemote, "",
                     absl::StrCat("kernel ", map->facts_.provenance.kernel_text,
                                  " is remote: phimap does not compute its values, so the artifact "
                                  "alone maps nothing; give the function that computes them"));
  }
  // A map with a head may never be asked for features.
  if (map->head() != nullptr) return map;
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<const Engine> engine, Engine::Load(decoded.plan));
  map->engine_ = std::move(engine);
  return map;
}

absl::StatusOr<std::shared_ptr<const Engine>> FeatureMap::engine() const {
  if (std::shared_ptr<const Engine> engine = engine_.load()) return engine;
  PHIMAP_ASSIGN_OR_RETURN(const Artifact artifact, DecodeArtifact(artifact_));
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<const Engine> engine, Engine::Load(artifact.plan));
  return Kept(engine_, std::move(engine));
}

absl::StatusOr<std::shared_ptr<const HeadAnswers>> FeatureMap::Head(bool with_features) const {
  if (head() == nullptr) {
    return MakeError(Code::kFailedPrecondition, reason::kHeadMissing, "",
                     "the artifact has features alone and no head that predicts; train one");
  }
  auto& part = with_features ? answers_and_features_ : answers_;
  if (std::shared_ptr<const HeadAnswers> answers = part.load()) return answers;
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(artifact_));
  PHIMAP_ASSIGN_OR_RETURN(phimap::Head head, DecodeHead(artifact.head));
  if (with_features && !artifact.head_variance.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(head.variance, DecodeVariance(artifact.head_variance));
  }
  PHIMAP_ASSIGN_OR_RETURN(
      std::shared_ptr<const HeadAnswers> answers,
      HeadAnswers::Load(std::move(artifact.plan), std::move(head), with_features));
  return Kept(part, std::move(answers));
}

absl::Status FeatureMap::Transform(const ExamplesView& rows, void* features, int threads) const {
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<const Engine> engine, this->engine());
  return Map(*engine, rows, static_cast<char*>(features), threads);
}

absl::Status FeatureMap::Residuals(const ExamplesView& rows, const void* features,
                                   double* residuals, double* allowances) const {
  if (residual() == nullptr) {
    return MakeError(
        Code::kFailedPrecondition, reason::kResidualNotAvailable, "residual",
        absl::StrCat("the map is ", facts_.provenance.spec_text, "; only ", Residual::kFamily,
                     " on inputs that are not projected has residuals"));
  }
  if (residual()->is_remote() && rows.columns() <= input_columns()) {
    return MakeError(Code::kInvalidArgument, reason::kSelfValuesMissing, "residual",
                     absl::StrCat("the residual needs K(x, x) as the last of ", input_columns() + 1,
                                  " columns; got ", rows.columns()),
                     {{"expected", absl::StrCat(input_columns() + 1)},
                      {"actual", absl::StrCat(rows.columns())}});
  }
  residual()->Compute(rows, features, residuals, allowances);
  return absl::OkStatus();
}

absl::StatusOr<Answers> FeatureMap::Predict(const WantedAnswers& wanted, const ExamplesView& rows,
                                            int threads) const {
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<const HeadAnswers> head, Head(wanted.deviations));
  PHIMAP_RETURN_IF_ERROR(head->Check(wanted));
  const Engine& engine = *head->engine();
  const int64_t row_bytes = engine.output_columns() * FloatTypeBytes(engine.serving_type());
  const std::unique_ptr<char[]> computed(new char[static_cast<size_t>(rows.rows() * row_bytes)]);
  PHIMAP_RETURN_IF_ERROR(Map(engine, rows, computed.get(), threads));
  thread_local EngineScratch scratch;
  absl::StatusOr<Answers> answers =
      head->Compute(wanted, rows, computed.get(), residual(), scratch);
  if (!answers.ok()) return InExamples(rows, answers.status());
  return answers;
}

}  // namespace phimap
