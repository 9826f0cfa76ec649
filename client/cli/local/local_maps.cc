#include "client/cli/local/local_maps.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/calls.h"
#include "client/files/input_file.h"
#include "client/files/output_file.h"
#include "client/local/local_job.h"
#include "client/local/onnx_model.h"
#include "core/mapping/build/build_cost.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/plan/examples.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/repeated_field.h"
#include "proto/artifact/artifact_description.h"
#include "proto/calls/prediction.h"
#include "proto/calls/specs.h"
#include "proto/error/request_errors.h"

namespace phimap::cli {
namespace {

using client::BuildProgress;

constexpr size_t kPieceBytes = size_t{1} << 20;
// Between two reports of progress.
constexpr absl::Duration kReportInterval = absl::Milliseconds(50);
// That a training which builds its features may keep on disk.
constexpr int64_t kSpoolBytes = int64_t{16} << 30;

// Reads until `bytes` has `size` bytes or the file ends.
absl::Status ReadUpTo(size_t size, InputFile& file, std::string& bytes) {
  std::string piece(std::min(size, kPieceBytes), '\0');
  while (bytes.size() < size) {
    const size_t wanted = std::min(size - bytes.size(), piece.size());
    PHIMAP_ASSIGN_OR_RETURN(const size_t came, file.Read(piece.data(), wanted));
    if (came == 0) return absl::OkStatus();
    bytes.append(piece, 0, came);
  }
  return absl::OkStatus();
}

FloatType TypeOf(client::FloatType type) {
  return type == client::FloatType::kFloat32 ? FloatType::kFloat32 : FloatType::kFloat64;
}

// The rows of a block, as the core takes them. The block must outlive the view.
class ViewOf {
 public:
  explicit ViewOf(const client::ExampleBlock& block) {
    if (const client::RowBlock* const dense = block.dense()) {
      view_ = RowsView{dense->values_le.data(), TypeOf(dense->type), dense->rows, dense->columns};
    } else if (const client::SparseBlock* const sparse = block.sparse()) {
      view_ = SparseRowsView{TypeOf(sparse->type),
                             sparse->rows(),
                             sparse->columns,
                             sparse->row_offsets_le.data(),
                             sparse->column_indices_le.data(),
                             sparse->values_le.data()};
    } else {
      const client::StringBlock& strings = *block.strings();
      for (const std::string& value : strings.values) pointers_.push_back(&value);
      view_ = StringsView{strings.is_text ? ExampleKind::kText : ExampleKind::kBytes,
                          pointers_.data(), static_cast<int64_t>(pointers_.size()), block.bytes()};
    }
  }
  const ExamplesView& view() const { return view_; }

 private:
  std::vector<const std::string*> pointers_;
  ExamplesView view_ = RowsView{};
};

// Reports the progress of a job, and ends it if the command is cancelled or its time is up.
class JobMonitor final : public BuildMonitor {
 public:
  JobMonitor(const client::BuildObserver& observer, client::CancelToken* cancel,
             absl::Duration timeout, int threads)
      : observer_(observer), cancel_(cancel), deadline_(absl::Now() + timeout), threads_(threads) {}

  absl::Status Checkpoint(absl::string_view phase, double fraction) override {
    if (cancel_ != nullptr && cancel_->cancelled()) return absl::CancelledError("cancelled");
    const absl::Time now = absl::Now();
    if (now > deadline_) return absl::DeadlineExceededError("the time of the command is up");
    if (observer_ == nullptr || now < reported_ + kReportInterval) return absl::OkStatus();
    reported_ = now;
    progress_.job.set_state(v1::BuildJob::STATE_COMPUTING);
    progress_.job.set_phase(std::string(phase));
    progress_.job.set_fraction(fraction);
    observer_(progress_);
    return absl::OkStatus();
  }
  int threads() const override { return threads_; }
  void Read(int64_t rows, bool all) {
    progress_.rows_sent = rows;
    progress_.sent = all;
    if (observer_ != nullptr) observer_(progress_);
  }

 private:
  const client::BuildObserver& observer_;
  client::CancelToken* const cancel_;
  const absl::Time deadline_;
  const int threads_;
  BuildProgress progress_;
  absl::Time reported_ = absl::InfinitePast();
};

// Calls `take` with each block of the source. `cancel` ends the reading.
template <typename Take>
absl::Status ForEachBlock(client::RowSource& source, client::CancelToken& cancel,
                          const Take& take) {
  const auto registration = cancel.OnCancel([&source] { source.Interrupt(); });
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const client::ExampleBlock block, source.Next({}));
    if (block.empty()) return absl::OkStatus();
    PHIMAP_RETURN_IF_ERROR(take(block));
  }
}

// Gives a job all rows. `known_of` returns what is known of the rows of a block.
template <typename KnownOf>
absl::Status AddAll(LocalJob& job, client::RowSource& source, JobMonitor& monitor,
                    client::CancelToken& cancel, const KnownOf& known_of) {
  int64_t rows = 0;
  PHIMAP_RETURN_IF_ERROR(ForEachBlock(source, cancel, [&](const client::ExampleBlock& block) {
    PHIMAP_ASSIGN_OR_RETURN(const v1::TrainingExamples known, known_of(block));
    PHIMAP_RETURN_IF_ERROR(job.Add(ViewOf(block).view(), known, monitor));
    monitor.Read(rows += block.rows(), /*all=*/false);
    return absl::OkStatus();
  }));
  monitor.Read(rows, /*all=*/true);
  return absl::OkStatus();
}

absl::StatusOr<v1::TrainingExamples> LabelsOf(const client::ExampleBlock& block,
                                              client::LabeledRowSource& source) {
  v1::TrainingExamples known;
  for (std::string& label : source.TakeLabels()) known.add_labels(std::move(label));
  if (known.labels_size() == block.rows()) return known;
  return absl::InternalError(
      absl::StrCat("the source has ", known.labels_size(), " labels for ", block.rows(), " rows"));
}

// Checks what a server checks of a version before it maps rows.
absl::Status CheckIsWanted(const FeatureMap& map, absl::string_view reference,
                           const std::string& expected_digest, const client::RowSource& source) {
  if (!expected_digest.empty() && expected_digest != map.digest()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kDigestMismatch,
                     "expected_digest", absl::StrCat(reference, " has the digest ", map.digest()),
                     {{"expected", expected_digest}, {"actual", map.digest()}});
  }
  const std::vector<std::string> came = source.column_names();
  const std::vector<std::string>& expected = map.facts().provenance.column_names;
  if (came.empty() || expected.empty() || came == expected) return absl::OkStatus();
  return client::ColumnsDiffer(reference, expected, came, "");
}

void Describe(const FeatureMap& map, absl::string_view name, v1::Version& version) {
  DescribeReviewed(map.facts(), map.digest(), static_cast<int64_t>(map.artifact().size()), version);
  version.mutable_ref()->set_name(std::string(name));
}

v1::VersionRef RefOf(const FeatureMap& map, absl::string_view name) {
  v1::VersionRef ref;
  ref.set_name(std::string(name));
  ref.set_digest(map.digest());
  return ref;
}

}  // namespace

bool IsArtifactPath(absl::string_view reference) {
  return absl::StrContains(reference, '.') || absl::StrContains(reference, '/');
}

absl::StatusOr<std::string> ReadArtifactFile(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(path));
  std::string bytes;
  PHIMAP_RETURN_IF_ERROR(ReadUpTo(kArtifactStartBytes, *file, bytes));
  if (bytes.size() < kArtifactStartBytes) return bytes;  // whoever decodes it will refuse it
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size, DescribeSize(bytes));
  PHIMAP_RETURN_IF_ERROR(ReadUpTo(static_cast<size_t>(size) + 1, *file, bytes));
  if (static_cast<int64_t>(bytes.size()) <= size) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(file->name(), ": the artifact's head states ",
                                                 size, " bytes, but the file has more"));
}

absl::StatusOr<std::string> OnnxModelOfArtifact(std::string artifact, absl::string_view outputs) {
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<const FeatureMap> map,
                          FeatureMap::Load(std::move(artifact), {.kernel_values = true}));
  const bool answers = outputs.empty() ? map->head() != nullptr : outputs == "answers";
  return OnnxModelOf(*map, answers ? OnnxOutputs::kAnswers : OnnxOutputs::kFeatures);
}

LocalMaps::LocalMaps()
    : threads_(UsableProcessors()),
      space_(std::filesystem::temp_directory_path().string(), kSpoolBytes) {}

absl::StatusOr<LocalMaps::Map> LocalMaps::Load(absl::string_view reference) {
  const std::string path(reference);
  if (const auto found = loaded_.find(path); found != loaded_.end()) return found->second;
  PHIMAP_ASSIGN_OR_RETURN(std::string bytes, ReadArtifactFile(path));
  absl::StatusOr<Map> map = FeatureMap::Load(std::move(bytes), {.kernel_values = true});
  if (!map.ok()) return DamageAsInput(map.status(), path);
  return loaded_[path] = *std::move(map);
}

absl::StatusOr<v1::Version> LocalMaps::Keep(std::string artifact) {
  PHIMAP_ASSIGN_OR_RETURN(made_, FeatureMap::Load(std::move(artifact), {.kernel_values = true}));
  v1::Version version;
  Describe(*made_, "", version);
  return version;
}

absl::Status LocalMaps::Save(const std::string& path, v1::Version& version) const {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, OutputFile::Open(path));
  PHIMAP_RETURN_IF_ERROR(file->Append(made_->artifact()));
  version.mutable_ref()->set_name(path);
  return file->Commit();
}

absl::StatusOr<v1::Version> LocalMaps::Build(const client::BuildOptions& options,
                                             client::RowSource& source,
                                             const client::BuildObserver& observer,
                                             client::CancelToken* cancel) {
  client::CancelToken none;
  client::CancelToken& token = cancel == nullptr ? none : *cancel;
  v1::BuildSpec spec;
  client::ToSpec(options, spec);
  for (std::string& name : source.column_names()) spec.add_column_names(std::move(name));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<LocalJob> job, BuildLocally(spec));
  JobMonitor monitor(observer, &token, options.timeout, threads_);
  PHIMAP_RETURN_IF_ERROR(AddAll(*job, source, monitor, token, [](const client::ExampleBlock&) {
    return absl::StatusOr<v1::TrainingExamples>(v1::TrainingExamples());
  }));
  PHIMAP_ASSIGN_OR_RETURN(std::string artifact, job->Finish(monitor));
  return Keep(std::move(artifact));
}

absl::StatusOr<v1::EstimateBuildResponse> LocalMaps::EstimateBuild(
    const client::BuildOptions& options, int64_t rows, int32_t columns) {
  v1::BuildSpec fields;
  client::ToSpec(options, fields);
  PHIMAP_ASSIGN_OR_RETURN(const BuildSpec spec, BuildSpecFromText(fields.spec(), fields));
  PHIMAP_RETURN_IF_ERROR(FromRequestRoot(CheckStreamRows(spec, rows)));
  PHIMAP_RETURN_IF_ERROR(FromRequestRoot(spec.CheckColumns(std::max(columns, 1))));
  const BuildCost cost = CostOfBuild(spec, rows, std::max(columns, 1), threads_);
  v1::EstimateBuildResponse response;
  response.set_peak_memory_bytes(cost.memory_bytes());
  response.set_artifact_size_bytes(cost.artifact_bytes);
  response.set_flops(cost.work.flops());
  response.set_seconds(SecondsOf(cost.work, MeasureBuildSpeed()));
  return response;
}

absl::StatusOr<v1::Version> LocalMaps::Train(const client::TrainOptions& options,
                                             client::LabeledRowSource& source,
                                             const client::BuildObserver& observer,
                                             client::CancelToken* cancel) {
  client::CancelToken none;
  client::CancelToken& token = cancel == nullptr ? none : *cancel;
  Map features;
  if (!options.build.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(features, Load(options.reference));
    PHIMAP_RETURN_IF_ERROR(
        CheckIsWanted(*features, options.reference, options.expected_digest, source));
  }
  v1::TrainingSpec spec;
  client::ToSpec(options, source.column_names(), spec);
  // A path is no reference, and `build` excludes both.
  spec.clear_column_names_hash();
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<LocalJob> job,
                          TrainLocally(std::move(features), spec, space_, threads_));
  JobMonitor monitor(observer, &token, options.timeout, threads_);
  PHIMAP_RETURN_IF_ERROR(
      AddAll(*job, source, monitor, token,
             [&](const client::ExampleBlock& block) -> absl::StatusOr<v1::TrainingExamples> {
               PHIMAP_ASSIGN_OR_RETURN(v1::TrainingExamples known, LabelsOf(block, source));
               PHIMAP_RETURN_IF_ERROR(client::AddFacts(source.TakeFacts(), known));
               return known;
             }));
  PHIMAP_ASSIGN_OR_RETURN(std::string artifact, job->Finish(monitor));
  return Keep(std::move(artifact));
}

absl::StatusOr<v1::Version> LocalMaps::Tune(const client::TrainOptions& options,
                                            client::LabeledRowSource& source,
                                            const client::BuildObserver& observer,
                                            client::CancelToken* cancel) {
  return Train(options, source, observer, cancel);
}

absl::StatusOr<client::TransformStreamResult> LocalMaps::TransformStream(
    absl::string_view reference, client::RowSource& source, const client::FeatureSink& sink,
    const client::TransformStreamOptions& options, client::CancelToken* cancel) {
  client::CancelToken none;
  PHIMAP_ASSIGN_OR_RETURN(const Map map, Load(reference));
  PHIMAP_RETURN_IF_ERROR(CheckIsWanted(*map, reference, options.expected_digest, source));
  const absl::Time deadline = absl::Now() + options.timeout;
  client::TransformStreamResult result{.version = RefOf(*map, reference)};
  const auto type = map->serving_type() == FloatType::kFloat32 ? client::FloatType::kFloat32
                                                               : client::FloatType::kFloat64;
  PHIMAP_RETURN_IF_ERROR(ForEachBlock(
      source, cancel == nullptr ? none : *cancel,
      [&](const client::ExampleBlock& block) -> absl::Status {
        if (absl::Now() > deadline) return absl::DeadlineExceededError("the time is up");
        const ViewOf rows(block);
        client::RowBlock features{.type = type,
                                  .rows = block.rows(),
                                  .columns = static_cast<int32_t>(map->output_columns())};
        features.values_le.resize(static_cast<size_t>(int64_t{features.rows} * features.columns *
                                                      client::ValueSizeBytes(type)));
        PHIMAP_RETURN_IF_ERROR(map->Transform(rows.view(), features.values_le.data(), threads_));
        if (options.residual) {
          google::protobuf::RepeatedField<double> residuals;
          residuals.Resize(block.rows(), 0.0);
          PHIMAP_RETURN_IF_ERROR(map->Residuals(rows.view(), features.values_le.data(),
                                                residuals.mutable_data(), nullptr));
          PHIMAP_ASSIGN_OR_RETURN(features, client::WithLastColumn(std::move(features), residuals));
        }
        result.rows += block.rows();
        return sink(std::move(features));
      }));
  return result;
}

absl::StatusOr<client::PredictStreamResult> LocalMaps::PredictStream(
    absl::string_view reference, client::RowSource& source, const client::PredictionSink& sink,
    const client::PredictStreamOptions& options, client::CancelToken* cancel) {
  client::CancelToken none;
  PHIMAP_ASSIGN_OR_RETURN(const Map map, Load(reference));
  PHIMAP_RETURN_IF_ERROR(CheckIsWanted(*map, reference, options.expected_digest, source));
  v1::PredictRequest request;
  client::ToRequest(options.wanted, request);
  const WantedAnswers wanted = WantedBy(request);
  PHIMAP_ASSIGN_OR_RETURN(const auto head, map->Head(wanted.deviations));
  const absl::Time deadline = absl::Now() + options.timeout;
  client::PredictStreamResult result{.version = RefOf(*map, reference)};
  PHIMAP_RETURN_IF_ERROR(ForEachBlock(
      source, cancel == nullptr ? none : *cancel,
      [&](const client::ExampleBlock& block) -> absl::Status {
        if (absl::Now() > deadline) return absl::DeadlineExceededError("the time is up");
        const ViewOf rows(block);
        PHIMAP_ASSIGN_OR_RETURN(const Answers answers, map->Predict(wanted, rows.view(), threads_));
        v1::PredictResponse response;
        PredictionToProto(head->head(), wanted, answers, ClassNames::kNone, &response);
        PHIMAP_ASSIGN_OR_RETURN(
            client::Predictions predictions,
            client::FromPrediction(std::move(response), head->head().classes, block.rows()));
        result.rows += block.rows();
        return sink(std::move(predictions));
      }));
  return result;
}

absl::StatusOr<v1::Evaluation> LocalMaps::Evaluate(const client::EvaluateOptions& options,
                                                   client::LabeledRowSource& source,
                                                   const client::EvaluateObserver& observer,
                                                   client::CancelToken* cancel) {
  client::CancelToken none;
  client::CancelToken& token = cancel == nullptr ? none : *cancel;
  PHIMAP_ASSIGN_OR_RETURN(const Map map, Load(options.reference));
  PHIMAP_RETURN_IF_ERROR(CheckIsWanted(*map, options.reference, options.expected_digest, source));
  v1::EvaluationSpec spec;
  client::ToSpec(options, {}, spec);
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<LocalJob> job, EvaluateLocally(map, spec));
  const client::BuildObserver show = [&](const BuildProgress& progress) {
    if (observer == nullptr) return;
    client::EvaluateProgress shown{.rows_sent = progress.rows_sent, .sent = progress.sent};
    if (progress.sent) shown.server.set_state(v1::EvaluateProgress::STATE_COMPUTING);
    shown.server.set_rows_received(progress.rows_sent);
    shown.server.set_fraction(progress.job.fraction());
    observer(shown);
  };
  JobMonitor monitor(show, &token, options.timeout, threads_);
  PHIMAP_RETURN_IF_ERROR(
      AddAll(*job, source, monitor, token,
             [&](const client::ExampleBlock& block) { return LabelsOf(block, source); }));
  PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, job->Finish(monitor));
  v1::Evaluation evaluation;
  if (!evaluation.ParseFromString(bytes)) return absl::InternalError("no evaluation");
  *evaluation.mutable_version() = RefOf(*map, options.reference);
  return evaluation;
}

absl::StatusOr<v1::Version> LocalMaps::GetVersion(absl::string_view reference, bool) {
  PHIMAP_ASSIGN_OR_RETURN(const Map map, Load(reference));
  v1::Version version;
  Describe(*map, reference, version);
  return version;
}

absl::StatusOr<client::ExportResult> LocalMaps::Export(absl::string_view reference,
                                                       const client::ArtifactSink& sink,
                                                       client::CancelToken*) {
  PHIMAP_ASSIGN_OR_RETURN(const Map map, Load(reference));
  PHIMAP_RETURN_IF_ERROR(sink(map->artifact()));
  return client::ExportResult{RefOf(*map, reference), static_cast<int64_t>(map->artifact().size())};
}

}  // namespace phimap::cli
