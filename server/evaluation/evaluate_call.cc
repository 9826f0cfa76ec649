#include "server/evaluation/evaluate_call.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/build/build_error.h"
#include "server/calls/stream_status.h"
#include "server/evaluation/evaluation_from_proto.h"
#include "server/evaluation/evaluation_to_proto.h"
#include "server/kernel_client/kernel_examples.h"
#include "server/serving/remote_kernel_rows.h"
#include "server/sync/steady_time.h"
#include "server/transform/row_messages.h"
#include "server/transform/transform_checks.h"

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
      Code::kResourceExhausted, "EVALUATION_LIMIT_REACHED", "",
      absl::StrCat("too many evaluations are under way; the limit is ", kMaxEvaluations),
      {{"limit", absl::StrCat(kMaxEvaluations)}}, kEvaluationRetryMs);
}

}  // namespace

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
  Finish(MakeError(Code::kInvalidArgument, "FINISH_MISSING", "finish",
                   "expected `finish` before the end of the stream; nothing was evaluated"));
}

void EvaluateCall::TakeSpec() {
  if (expects_ != Expects::kSpec)
    return Finish(Unexpected("spec", "a spec in the first message only"));
  absl::StatusOr<EvaluationSpec> spec = EvaluationSpecFromProto(request().spec());
  if (!spec.ok()) return Finish(spec.status());
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
  SetState(v1::EvaluateProgress::RECEIVING);
  ReadNext();
}

absl::StatusOr<ExamplesView> EvaluateCall::ReadExamples() {
  const v1::LabeledExamples& labeled = request().examples();
  PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(labeled.examples()));
  PHIMAP_RETURN_IF_ERROR(job_->version().CheckTakes(rows));
  if (labeled.labels_size() == rows.rows()) return rows;
  return MakeError(
      Code::kInvalidArgument, "LENGTH_MISMATCH", "labels",
      absl::StrCat("expected one label for each of ", rows.rows(), " rows, got ",
                   labeled.labels_size()),
      {{"expected", absl::StrCat(rows.rows())}, {"actual", absl::StrCat(labeled.labels_size())}});
}

void EvaluateCall::TakeExamples() {
  if (expects_ != Expects::kExamples)
    return Finish(Unexpected("spec", "a spec in the first message"));
  const absl::StatusOr<ExamplesView> read = ReadExamples();
  if (!read.ok()) return Finish(WithFieldPrefix(read.status(), "examples."));
  const ExamplesView rows = *read;
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
  SetState(v1::EvaluateProgress::QUEUED);
  Queue(environment_.learning, [this](Job job) { LearnNow(std::move(job)); });
}

void EvaluateCall::LearnNow(Job job) {
  yielded_ = absl::InfinitePast();
  Post([this] { SetState(v1::EvaluateProgress::COMPUTING); });
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

}  // namespace phimap
