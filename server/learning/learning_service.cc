#include "server/learning/learning_service.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "core/thread/steady_time.h"
#include "google/protobuf/descriptor.h"
#include "phimap/v1/learning_service.pb.h"
#include "proto/calls/evaluation.h"
#include "proto/calls/specs.h"
#include "proto/error/request_errors.h"
#include "server/build/build_error.h"
#include "server/kernel_client/kernel_examples.h"
#include "server/kernel_client/kernel_queue.h"
#include "server/kernel_client/remote_kernel_rows.h"
#include "server/learning/evaluation_job.h"
#include "server/mapping/building_call.h"
#include "server/registry/version_registry.h"
#include "server/rpc/call.h"
#include "server/transform/row_messages.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kEvaluationRetryMs = 1000;
// Minimum increase of the fraction done between two reports of progress.
constexpr double kFractionStep = 0.01;
// Minimum time between two yields: a learner's checkpoints can be microseconds apart.
constexpr absl::Duration kBetweenYields = absl::Milliseconds(2);

absl::Status TooManyEvaluations() {
  return MakeError(
      Code::kResourceExhausted, reason::kEvaluationLimitReached, "",
      absl::StrCat("too many evaluations are under way; the limit is ", kMaxEvaluations),
      {{"limit", absl::StrCat(kMaxEvaluations)}}, kEvaluationRetryMs);
}

// One Evaluate call: receives spec, labeled examples and finish; sends progress and the evaluation.
//
// Invariants:
//   1. The next message is read only after an ingest thread has processed the previous one, which
//      it reads in place.
//   2. At most one write is in progress. Of the progress made during a write, only the newest is
//      sent, after that write.
//   3. While a task works on the job, the job belongs to the task, and otherwise to the call.
//   4. When the call ends, its queued work is withdrawn, and running work stops at its next
//      checkpoint. So no thread works for a client that has left.
class EvaluateCall final : public TypedStreamCall<v1::EvaluateRequest> {
 public:
  EvaluateCall(const CallStart& start, const EvaluateCallEnvironment& environment);

 private:
  using Job = std::shared_ptr<EvaluationJob>;
  using Framed = std::shared_ptr<const OutputBytes>;
  // The message that the client may send next.
  enum class Expects { kSpec, kExamples, kNothing };

  void Start() override;
  void OnRequest() override;
  void OnRequestsEnd() override;
  void OnWritten() override;
  void OnEnd(const absl::Status& status) override;

  // Each handles the message in request().
  void TakeSpec();
  void Resolved(const EvaluationSpec& spec, absl::StatusOr<VersionHandle> version);
  void TakeExamples();
  void TakeFinish();
  absl::StatusOr<ExamplesView> ReadExamples();
  // Queues `piece`, and gives it the job.
  void Queue(JobQueue& queue, std::function<void(Job)> piece);
  void SetState(v1::EvaluateProgress::State state);
  // Writes the next event, if there is one and no write is in progress.
  void Tell();

  // The next functions run on an ingest thread. AskService asks the version's kernel service for
  // the values of `rows`, which follow `rows_before` earlier rows, and continues with the values.
  void AskService(const VersionHandle& version, const ExamplesView& rows, int64_t rows_before);
  absl::Status AddValues(EvaluationJob& job, const KernelRows& values);
  absl::Status Add(EvaluationJob& job, const ExamplesView& rows);
  // Returns the job to the call, or ends the call if `added` is an error or the call has ended.
  void Added(Job job, const absl::Status& added);
  // The next functions run on a learning thread.
  void LearnNow(Job job);
  absl::StatusOr<Framed> Learn(EvaluationJob& job);
  absl::Status Report(int fold, double fraction);
  // Yields to Transforms if the last yield was long enough ago. Returns an error if the client has
  // left. Runs on ingest threads and on learning threads.
  absl::Status LookUp();
  // Ends the call. May be called on any thread.
  void FinishSoon(const absl::Status& status);

  const EvaluateCallEnvironment& environment_;
  Expects expects_ = Expects::kSpec;
  Job job_;
  v1::EvaluateProgress progress_;
  bool changed_ = false;
  Framed evaluation_;
  bool evaluation_told_ = false;
  std::atomic<bool> ended_{false};

  // Used only by the thread that works: the time at which LookUp last yielded, and the progress
  // last reported.
  absl::Time yielded_ = absl::InfinitePast();
  int told_fold_ = -1;
  double told_fraction_ = 0;
};

EvaluateCall::EvaluateCall(const CallStart& start, const EvaluateCallEnvironment& environment)
    : TypedStreamCall(start), environment_(environment) {}

void EvaluateCall::Start() {
  if (environment_.running.fetch_add(1) >= kMaxEvaluations) return Finish(TooManyEvaluations());
  SetIdleLimit(environment_.idle_timeout);
  SetPace(kSlowestBytesPerSecond);
  ReadNext();
}

void EvaluateCall::OnRequest() {
  switch (request().message_case()) {
    case v1::EvaluateRequest::kSpec:
      return TakeSpec();
    case v1::EvaluateRequest::kExamples:
      return TakeExamples();
    case v1::EvaluateRequest::kFinish:
      return TakeFinish();
    case v1::EvaluateRequest::MESSAGE_NOT_SET:
      return Finish(Unexpected("message", "spec, examples or finish, got none"));
  }
}

void EvaluateCall::OnRequestsEnd() {
  if (expects_ == Expects::kSpec) return Finish(Unexpected("spec", "a spec, but the stream ended"));
  Finish(MakeError(Code::kInvalidArgument, reason::kFinishMissing, "finish",
                   "expected `finish` before the end of the stream; nothing was evaluated"));
}

void EvaluateCall::TakeSpec() {
  if (expects_ != Expects::kSpec)
    return Finish(Unexpected("spec", "a spec in the first message only"));
  absl::StatusOr<EvaluationSpec> spec = EvaluationSpecFromProto(request().spec());
  if (!spec.ok()) return Finish(spec.status());
  absl::Status allowed = CheckReference(*this, request().spec().reference());
  if (!allowed.ok()) return Finish(WithFieldPrefix(allowed, "spec."));
  if (allowed = Spend(Rated::kBuilds, 1); !allowed.ok()) return Finish(allowed);
  environment_.registry.Acquire(
      request().spec().reference(), [this, self = shared_from_this(), spec = *std::move(spec)](
                                        absl::StatusOr<VersionHandle> version) {
        if (OnLoop()) return Resolved(spec, std::move(version));
        // The version was not live, so it was loaded on another thread.
        Post([this, spec, version = std::move(version)] { Resolved(spec, version); });
      });
}

void EvaluateCall::Resolved(const EvaluationSpec& spec, absl::StatusOr<VersionHandle> version) {
  if (!version.ok()) return Finish(WithFieldPrefix(version.status(), "spec."));
  const absl::Status same = CheckDigest(*version, request().spec().expected_digest());
  if (!same.ok()) return Finish(WithFieldPrefix(same, "spec."));
  const absl::Status named =
      CheckColumnNamesHash(*version, request().spec().column_names_hash(), "column_names_hash");
  if (!named.ok()) return Finish(WithFieldPrefix(named, "spec."));
  const absl::Status suits = CheckVersion(spec.learner, *version);
  if (!suits.ok()) return Finish(WithFieldPrefix(suits, "spec."));
  environment_.registry.NoteUse(*version);
  RefToProto(version->record(), progress_.mutable_version());
  job_ = std::make_shared<EvaluationJob>(*std::move(version), spec, environment_.memory);
  expects_ = Expects::kExamples;
  SetState(v1::EvaluateProgress::STATE_RECEIVING);
  ReadNext();
}

absl::StatusOr<ExamplesView> EvaluateCall::ReadExamples() {
  const v1::LabeledExamples& labeled = request().examples();
  PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(labeled.examples()));
  PHIMAP_RETURN_IF_ERROR(job_->version().CheckTakes(rows));
  if (labeled.labels_size() == rows.rows()) return rows;
  return MakeError(
      Code::kInvalidArgument, reason::kLengthMismatch, "labels",
      absl::StrCat("expected one label for each of ", CountOf(rows.rows(), "row"), ", got ",
                   labeled.labels_size()),
      {{"expected", absl::StrCat(rows.rows())}, {"actual", absl::StrCat(labeled.labels_size())}});
}

void EvaluateCall::TakeExamples() {
  if (expects_ != Expects::kExamples)
    return Finish(Unexpected("spec", "a spec in the first message"));
  const absl::StatusOr<ExamplesView> read = ReadExamples();
  if (!read.ok()) return Finish(WithFieldPrefix(read.status(), "examples."));
  const ExamplesView rows = *read;
  if (const absl::Status spent = Spend(Rated::kRows, rows.rows()); !spent.ok()) {
    return Finish(spent);
  }
  if (job_->version().kernel() == nullptr) {
    return Queue(environment_.ingest, [this, rows](Job job) {
      const auto add = [&] { return Add(*job, rows); };
      const absl::Status added = CatchOutOfMemory<absl::Status>(add);
      Added(std::move(job), added);
    });
  }
  // The job stays with the call while the service computes.
  const auto self = std::static_pointer_cast<EvaluateCall>(shared_from_this());
  environment_.ingest.Submit(self,
                             [self, version = job_->version(), rows, rows_before = job_->rows()] {
                               self->AskService(version, rows, rows_before);
                             });
}

void EvaluateCall::Queue(JobQueue& queue, std::function<void(Job)> piece) {
  const auto self = std::static_pointer_cast<EvaluateCall>(shared_from_this());
  queue.Submit(self, [self, piece = std::move(piece),
                      job = std::exchange(job_, nullptr)]() mutable { piece(std::move(job)); });
}

void EvaluateCall::AskService(const VersionHandle& version, const ExamplesView& rows,
                              int64_t rows_before) {
  const absl::string_view field = RowsField(rows.kind());
  if (const absl::Status good = CheckExamples(rows); !good.ok()) {
    return FinishSoon(
        WithFieldPrefix(InStream(WithFieldPrefix(good, field), rows_before), "examples."));
  }
  KernelQueue& kernel = *version.kernel();
  const auto append = [rows, kind = kernel.kind()](v1::Examples& to) {
    AppendExamples(rows, kind, to);
  };
  const auto done = [this, self = shared_from_this(), field](absl::StatusOr<KernelRows> values) {
    if (!values.ok()) {
      return FinishSoon(WithFieldPrefix(WithFieldPrefix(values.status(), field), "examples."));
    }
    Post([this, values = *std::move(values)] {
      Queue(environment_.ingest, [this, values](Job job) {
        const auto add = [&] { return AddValues(*job, values); };
        const absl::Status added = CatchOutOfMemory<absl::Status>(add);
        Added(std::move(job), added);
      });
    });
  };
  kernel.Submit({.count = rows.rows(),
                 .bytes = AppendedBytes(rows, kernel.kind()),
                 .append = append,
                 .deadline = deadline(),
                 .cancelled = cancelled(),
                 .done = done});
}

absl::Status EvaluateCall::AddValues(EvaluationJob& job, const KernelRows& values) {
  RemoteKernelRows rows(values, *job.version().kernel());
  PHIMAP_RETURN_IF_ERROR(rows.Fill());
  return Add(job, rows.rows());
}

absl::Status EvaluateCall::Add(EvaluationJob& job, const ExamplesView& rows) {
  const auto label = [this](int64_t i) -> absl::string_view {
    return request().examples().labels(static_cast<int>(i));
  };
  return WithFieldPrefix(job.Add(rows, label, [this] { return LookUp(); }), "examples.");
}

void EvaluateCall::Added(Job job, const absl::Status& added) {
  // Frees a job that is no longer needed before the client gets the error. It is freed on this
  // thread, because to free so much memory may take too long for the loop.
  if (!added.ok() || ended_.load()) {
    job.reset();
    return FinishSoon(added);
  }
  Post([this, job = std::move(job)] {
    job_ = job;
    progress_.set_rows_received(job_->rows());
    changed_ = true;
    Tell();
    ReadNext();
  });
}

void EvaluateCall::TakeFinish() {
  if (expects_ != Expects::kExamples)
    return Finish(Unexpected("spec", "a spec in the first message"));
  expects_ = Expects::kNothing;
  const int64_t sent = request().finish().row_count();
  if (sent != job_->rows()) return Finish(WrongRowCount(sent, job_->rows()));
  SetState(v1::EvaluateProgress::STATE_QUEUED);
  Queue(environment_.learning, [this](Job job) { LearnNow(std::move(job)); });
}

void EvaluateCall::LearnNow(Job job) {
  yielded_ = absl::InfinitePast();
  Post([this] { SetState(v1::EvaluateProgress::STATE_COMPUTING); });
  const absl::StatusOr<Framed> evaluation =
      CatchOutOfMemory<absl::StatusOr<Framed>>([&] { return Learn(*job); });
  job.reset();  // frees its memory before the client is notified
  if (!evaluation.ok()) return FinishSoon(evaluation.status());
  Post([this, evaluation = *evaluation] {
    evaluation_ = evaluation;
    Tell();
  });
}

absl::StatusOr<EvaluateCall::Framed> EvaluateCall::Learn(EvaluationJob& job) {
  PHIMAP_ASSIGN_OR_RETURN(const EvaluationOutcome outcome,
                          job.Run(environment_.store, [this](int fold, double fraction) {
                            return Report(fold, fraction);
                          }));
  v1::EvaluateResponse response;
  v1::Evaluation& evaluation = *response.mutable_evaluation();
  EvaluationToProto(job.spec(), outcome, &evaluation);
  RefToProto(job.version().record(), evaluation.mutable_version());
  return Frame(response);
}

absl::Status EvaluateCall::LookUp() {
  if (ended_.load()) return ClientGone();
  if (SteadyNow() < yielded_ + kBetweenYields) return absl::OkStatus();
  if (environment_.yield) environment_.yield();
  yielded_ = SteadyNow();
  return absl::OkStatus();
}

absl::Status EvaluateCall::Report(int fold, double fraction) {
  PHIMAP_RETURN_IF_ERROR(LookUp());
  if (told_fold_ == fold && fraction - told_fraction_ < kFractionStep) return absl::OkStatus();
  told_fold_ = fold;
  told_fraction_ = fraction;
  Post([this, fold, fraction] {
    progress_.set_fold(fold + 1);
    progress_.set_fraction(fraction);
    changed_ = true;
    Tell();
  });
  return absl::OkStatus();
}

void EvaluateCall::FinishSoon(const absl::Status& status) {
  Post([this, status] { Finish(status); });
}

void EvaluateCall::SetState(v1::EvaluateProgress::State state) {
  progress_.set_state(state);
  changed_ = true;
  Tell();
}

void EvaluateCall::OnWritten() {
  if (evaluation_told_) return Finish(absl::OkStatus());
  Tell();
}

void EvaluateCall::Tell() {
  if (writing() || evaluation_told_) return;
  if (evaluation_ != nullptr) {
    evaluation_told_ = true;
    return Write(std::move(evaluation_));
  }
  if (!std::exchange(changed_, false)) return;
  v1::EvaluateResponse response;
  *response.mutable_progress() = progress_;
  Write(response);
}

void EvaluateCall::OnEnd(const absl::Status&) {
  ended_.store(true);
  environment_.running.fetch_sub(1);
  JobQueue::Task added = environment_.ingest.Withdraw(this);
  JobQueue::Task learned = environment_.learning.Withdraw(this);
  if (job_ == nullptr && added == nullptr && learned == nullptr) return;
  // Frees the memory on an ingest thread: to free gigabytes takes longer than the loop may pause.
  environment_.ingest.Submit(nullptr, [job = std::exchange(job_, nullptr), added = std::move(added),
                                       learned = std::move(learned)] {});
}

// One Train call: a build that trains a head on the features of a version.
class TrainCall final : public BuildingCall<v1::TrainRequest, v1::TrainResponse> {
 public:
  // `builds` and `registry` must outlive the call.
  TrainCall(const CallStart& start, BuildManager& builds, VersionRegistry& registry)
      : BuildingCall(start, builds), registry_(registry) {}

 private:
  absl::Status TakeSpec() override;
  absl::StatusOr<TrainingBlock> ReadExamples(const BuildJob& job) override;
  // Begins the build of the mapping `name`, whose path in the request is `path_of_name`.
  absl::Status Order(absl::string_view name, absl::string_view path_of_name,
                     TrainingOrder training);
  // Begins the build once the version is loaded.
  absl::Status Resolved(const TrainingSpec& spec, const absl::StatusOr<VersionHandle>& version);

  VersionRegistry& registry_;
};

absl::Status TrainCall::TakeSpec() {
  PHIMAP_ASSIGN_OR_RETURN(const TrainingSpec spec, TrainingSpecFromProto(request().spec()));
  const v1::TrainingSpec& fields = request().spec();
  if (fields.has_build()) {
    PHIMAP_ASSIGN_OR_RETURN(FeaturesOrder features, FeaturesFromProto(fields));
    return Order(fields.build().name(), "spec.build.",
                 {.version = {}, .features = std::move(features), .spec = spec});
  }
  if (fields.learn_scales() || fields.has_tuning()) {
    return MakeError(Code::kInvalidArgument, reason::kFieldsContradictory,
                     fields.has_tuning() ? "spec.tuning" : "spec.learn_scales",
                     "expected build with it: the features of a version stay as they are");
  }
  PHIMAP_RETURN_IF_ERROR(
      WithFieldPrefix(CheckReference(*this, request().spec().reference()), "spec."));
  registry_.Acquire(
      request().spec().reference(),
      [this, self = shared_from_this(), spec](const absl::StatusOr<VersionHandle>& version) {
        const auto begin = [this, spec, version] {
          if (const absl::Status begun = Resolved(spec, version); !begun.ok()) Finish(begun);
        };
        // If the version was not live, it was loaded on another thread.
        OnLoop() ? begin() : Post(begin);
      });
  return absl::OkStatus();
}

absl::Status TrainCall::Resolved(const TrainingSpec& spec,
                                 const absl::StatusOr<VersionHandle>& version) {
  const v1::TrainingSpec& fields = request().spec();
  if (!version.ok()) return WithFieldPrefix(version.status(), "spec.");
  const absl::Status same = CheckDigest(*version, fields.expected_digest());
  if (!same.ok()) return WithFieldPrefix(same, "spec.");
  const absl::Status named =
      CheckColumnNamesHash(*version, fields.column_names_hash(), "column_names_hash");
  if (!named.ok()) return WithFieldPrefix(named, "spec.");
  registry_.NoteUse(*version);
  return Order(version->record().mapping, "spec.",
               {.version = *version, .features = std::nullopt, .spec = spec});
}

absl::Status TrainCall::Order(absl::string_view name, absl::string_view path_of_name,
                              TrainingOrder training) {
  const v1::TrainingSpec& fields = request().spec();
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(name, absl::StrCat(path_of_name, "name")));
  PHIMAP_ASSIGN_OR_RETURN(BuildId id, BuildIdFromProto(name, fields.build_id(), "spec."));
  BuildOrder order;
  if (fields.has_ttl()) {
    PHIMAP_ASSIGN_OR_RETURN(order.ttl, TtlFromProto(fields.ttl(), "spec.ttl"));
  }
  order.training = std::make_shared<const TrainingOrder>(std::move(training));
  PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(CheckNewVersion(name), path_of_name));
  order.caller = caller();
  order.principal = principal();
  order.origin = Origin();
  order.span = span();
  builds().Begin(std::move(id), std::move(order), Opens());
  return absl::OkStatus();
}

absl::StatusOr<TrainingBlock> TrainCall::ReadExamples(const BuildJob& job) {
  const absl::StatusOr<ExamplesView> rows = ExamplesFromProto(request().examples().examples());
  if (!rows.ok()) return WithFieldPrefix(rows.status(), "examples.");
  absl::StatusOr<TrainingBlock> block = BlockFromProto(request().examples(), *rows);
  if (!block.ok()) return WithFieldPrefix(block.status(), "examples.");
  if (job.order().training->features.has_value()) return block;
  const absl::Status suits = job.order().training->version.CheckTakes(block->rows);
  if (!suits.ok()) return WithFieldPrefix(suits, "examples.");
  return block;
}

}  // namespace

LearningService::LearningService(Environment environment)
    : builds_(environment.builds),
      environment_{environment.registry,
                   environment.store,
                   environment.memory,
                   ingest_,
                   learning_,
                   running_,
                   environment.idle_timeout,
                   std::move(environment.yield)} {}

void LearningService::AddTo(Dispatcher& dispatcher) {
  dispatcher.Add(*v1::EvaluateRequest::descriptor()->file()->FindServiceByName("LearningService"),
                 {{"Evaluate", Opens<EvaluateCall>(environment_)},
                  {"Train", Opens<TrainCall>(builds_, environment_.registry)}});
}

}  // namespace phimap
