#include "server/rpc/evaluate_call.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/build/build_error.h"
#include "server/kernel/kernel_examples.h"
#include "server/rpc/evaluation_from_proto.h"
#include "server/rpc/evaluation_to_proto.h"
#include "server/rpc/examples_from_proto.h"
#include "server/rpc/features_to_proto.h"
#include "server/rpc/request_message.h"
#include "server/rpc/service_rows.h"
#include "server/rpc/stream_status.h"
#include "server/rpc/version_ref_to_proto.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kEvaluationRetryMs = 1000;
// Shares of the work that are told are this far apart.
constexpr double kFractionStep = 0.01;
// Checkpoints of a learner can be microseconds apart.
constexpr absl::Duration kBetweenYields = absl::Milliseconds(2);

absl::Status TooManyEvaluations() {
  return MakeError(
      Code::kResourceExhausted, "TOO_MANY_EVALUATIONS", "",
      absl::StrCat("too many evaluations are under way; the limit is ", kMaxEvaluations),
      {{"limit", absl::StrCat(kMaxEvaluations)}}, kEvaluationRetryMs);
}

// Runs `step`, which may run out of memory.
template <typename Result, typename Step>
Result CatchOutOfMemory(const Step& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace

EvaluateCall::EvaluateCall(const Environment& environment, const RpcMethod& method,
                           const grpc::CallbackServerContext& context)
    : environment_(environment),
      scope_(context, method, environment.logger),
      under_way_(environment.running.fetch_add(1)) {}

EvaluateCall::~EvaluateCall() { environment_.running.fetch_sub(1); }

void EvaluateCall::Start() {
  self_ = shared_from_this();
  if (!scope_.admission().ok()) return Fail(scope_.admission());
  if (under_way_ >= kMaxEvaluations) return Fail(TooManyEvaluations());
  idle_.emplace(
      environment_.idle_timeout, weak_from_this(), [this] { return WaitingSince(); },
      [this] { Fail(SilentStream(environment_.idle_timeout)); });
  WantRead();
}

void EvaluateCall::OnDone() { self_.reset(); }

void EvaluateCall::OnCancel() {
  scope_.Cancel();
  Fail(ClientGone());
}

void EvaluateCall::OnWriteDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    writing_ = false;
  }
  if (!ok) return Fail(ClientGone());
  scope_.MessageSent();
  Advance();
}

void EvaluateCall::OnReadDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    waiting_since_ = absl::InfiniteFuture();
    if (end_.has_value()) return;
  }
  if (!ok) return StreamEnded();
  if (absl::Status s = ParseRequest(bytes_, request_); !s.ok()) return Fail(s);
  scope_.MessageReceived();
  switch (request_.message_case()) {
    case v1::EvaluateRequest::kSpec:
      return TakeSpec();
    case v1::EvaluateRequest::kExamples:
      return TakeExamples();
    case v1::EvaluateRequest::kFinish:
      return TakeFinish();
    case v1::EvaluateRequest::MESSAGE_NOT_SET:
      return Fail(Unexpected("message", "spec, examples or finish, got none"));
  }
}

void EvaluateCall::StreamEnded() {
  if (expects_ == Expects::kSpec) return Fail(Unexpected("spec", "a spec, the stream ended"));
  Fail(MakeError(Code::kInvalidArgument, "NO_FINISH", "finish",
                 "the stream ended without it; nothing was evaluated"));
}

void EvaluateCall::TakeSpec() {
  if (expects_ != Expects::kSpec) return Fail(Unexpected("spec", "it in the first message only"));
  absl::StatusOr<EvaluationSpec> spec = EvaluationSpecFromProto(request_.spec());
  if (!spec.ok()) return Fail(spec.status());
  environment_.registry.Acquire(
      request_.spec().reference(),
      [self = shared_from_this(), spec = *spec](absl::StatusOr<VersionHandle> version) {
        self->Resolved(spec, std::move(version));
      });
}

void EvaluateCall::Resolved(EvaluationSpec spec, absl::StatusOr<VersionHandle> version) {
  if (!version.ok()) return Fail(WithFieldPrefix(version.status(), "spec."));
  const absl::Status same = CheckDigest(*version, request_.spec().expected_digest());
  if (!same.ok()) return Fail(WithFieldPrefix(same, "spec."));
  const absl::Status suits = CheckVersion(spec.learner, *version);
  if (!suits.ok()) return Fail(WithFieldPrefix(suits, "spec."));
  {
    MutexLock lock(&mutex_);
    RefToProto(version->record(), progress_.mutable_version());
  }
  job_ = std::make_unique<EvaluationJob>(*std::move(version), std::move(spec), environment_.memory);
  expects_ = Expects::kExamples;
  Tell(v1::EvaluateProgress::RECEIVING);
  WantRead();
}

absl::StatusOr<ExamplesView> EvaluateCall::ReadExamples() const {
  const v1::LabeledExamples& labeled = request_.examples();
  PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(labeled.examples()));
  PHIMAP_RETURN_IF_ERROR(job_->version().CheckTakes(rows));
  if (labeled.labels_size() == rows.rows()) return rows;
  return MakeError(
      Code::kInvalidArgument, "WRONG_LENGTH", "labels",
      absl::StrCat("expected one for each of ", rows.rows(), " rows, got ", labeled.labels_size()),
      {{"expected", absl::StrCat(rows.rows())}, {"actual", absl::StrCat(labeled.labels_size())}});
}

void EvaluateCall::TakeExamples() {
  if (expects_ != Expects::kExamples) return Fail(Unexpected("spec", "it in the first message"));
  const absl::StatusOr<ExamplesView> rows = ReadExamples();
  if (!rows.ok()) return Fail(WithFieldPrefix(rows.status(), "examples."));
  if (job_->version().kernel() != nullptr) return AskService(*rows);
  Queue(environment_.ingest, [self = shared_from_this(), rows = *rows] { self->AddNow(rows); });
}

void EvaluateCall::AskService(const ExamplesView& rows) {
  const absl::string_view field = RowsField(rows.kind());
  if (const absl::Status good = CheckExamples(rows); !good.ok()) {
    return Fail(WithFieldPrefix(InStream(WithFieldPrefix(good, field), job_->rows()), "examples."));
  }
  KernelQueue& kernel = *job_->version().kernel();
  kernel.Submit({.count = rows.rows(),
                 .bytes = AppendedBytes(rows, kernel.kind()),
                 .append = [self = shared_from_this(), rows,
                            as = kernel.kind()](v1::Examples& to) { AppendExamples(rows, as, to); },
                 .deadline = scope_.deadline(),
                 .cancelled = scope_.cancelled(),
                 .done =
                     [self = shared_from_this(), field](absl::StatusOr<KernelRows> values) {
                       self->Answered(field, std::move(values));
                     }});
}

// On a thread of gRPC's.
void EvaluateCall::Answered(absl::string_view field, absl::StatusOr<KernelRows> values) {
  if (!values.ok()) {
    return Fail(WithFieldPrefix(WithFieldPrefix(values.status(), field), "examples."));
  }
  const auto rows = std::make_shared<ServiceRows>(*std::move(values), *job_->version().kernel());
  Queue(environment_.ingest, [self = shared_from_this(), rows] {
    const absl::Status finite = rows->Fill();
    finite.ok() ? self->AddNow(rows->rows()) : self->Fail(finite);
  });
}

void EvaluateCall::AddNow(const ExamplesView& rows) {
  const absl::Status added = CatchOutOfMemory<absl::Status>([&] {
    const auto label = [this](int64_t i) -> absl::string_view {
      return request_.examples().labels(static_cast<int>(i));
    };
    return job_->Add(rows, label, [this] { return LookUp(); });
  });
  if (!added.ok()) return Fail(WithFieldPrefix(added, "examples."));
  {
    MutexLock lock(&mutex_);
    progress_.set_rows_received(job_->rows());
    changed_ = true;
  }
  WantRead();
}

void EvaluateCall::TakeFinish() {
  if (expects_ != Expects::kExamples) return Fail(Unexpected("spec", "it in the first message"));
  expects_ = Expects::kNothing;
  const int64_t sent = request_.finish().row_count();
  if (sent != job_->rows()) return Fail(WrongRowCount(sent, job_->rows()));
  Tell(v1::EvaluateProgress::QUEUED);
  Queue(environment_.learning, [self = shared_from_this()] { self->LearnNow(); });
}

void EvaluateCall::LearnNow() {
  yielded_ = absl::InfinitePast();
  Tell(v1::EvaluateProgress::COMPUTING);
  const EvaluationSpec spec = job_->spec();
  const absl::StatusOr<EvaluationOutcome> outcome =
      CatchOutOfMemory<absl::StatusOr<EvaluationOutcome>>([this] {
        return job_->Run(environment_.store,
                         [this](int fold, double fraction) { return Report(fold, fraction); });
      });
  job_.reset();  // its memory is free before the client hears
  if (!outcome.ok()) return Fail(outcome.status());
  v1::Evaluation evaluation;
  EvaluationToProto(spec, *outcome, &evaluation);
  {
    MutexLock lock(&mutex_);
    *evaluation.mutable_version() = progress_.version();
    evaluation_ = std::move(evaluation);
  }
  Advance();
}

void EvaluateCall::Queue(JobQueue& queue, JobQueue::Task task) {
  queue.Submit(shared_from_this(), std::move(task));
  // Who ended the call before this looked for its work in vain.
  if (Ended()) Withdraw();
}

void EvaluateCall::Withdraw() {
  const auto self = shared_from_this();  // the task may hold the last other reference
  environment_.ingest.Withdraw(this);
  environment_.learning.Withdraw(this);
}

bool EvaluateCall::Ended() {
  MutexLock lock(&mutex_);
  return end_.has_value();
}

absl::Status EvaluateCall::LookUp() {
  if (Ended()) return ClientGone();
  const absl::Time now = absl::Now();
  if (now > scope_.deadline()) {
    return absl::DeadlineExceededError("the deadline passed before the evaluation was done");
  }
  if (now < yielded_ + kBetweenYields) return absl::OkStatus();
  if (environment_.yield) environment_.yield();
  yielded_ = absl::Now();
  return absl::OkStatus();
}

absl::Status EvaluateCall::Report(int fold, double fraction) {
  PHIMAP_RETURN_IF_ERROR(LookUp());
  {
    MutexLock lock(&mutex_);
    if (progress_.fold() == fold + 1 && fraction - progress_.fraction() < kFractionStep) {
      return absl::OkStatus();
    }
    progress_.set_fold(fold + 1);
    progress_.set_fraction(fraction);
    changed_ = true;
  }
  Advance();
  return absl::OkStatus();
}

std::optional<absl::Time> EvaluateCall::WaitingSince() {
  MutexLock lock(&mutex_);
  if (end_.has_value() || finished_) return std::nullopt;
  return waiting_since_;
}

void EvaluateCall::Fail(const absl::Status& error) {
  {
    MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = error;
  }
  Withdraw();
  Advance();
}

void EvaluateCall::WantRead() {
  {
    MutexLock lock(&mutex_);
    want_read_ = true;
  }
  Advance();
}

void EvaluateCall::Tell(v1::EvaluateProgress::State state) {
  {
    MutexLock lock(&mutex_);
    progress_.set_state(state);
    changed_ = true;
  }
  Advance();
}

bool EvaluateCall::NextEvent() {
  response_.Clear();
  if (evaluation_.has_value()) {
    *response_.mutable_evaluation() = *std::move(evaluation_);
    evaluation_.reset();
    evaluation_told_ = true;
    return true;
  }
  if (!changed_ || evaluation_told_) return false;
  changed_ = false;
  *response_.mutable_progress() = progress_;
  return true;
}

EvaluateCall::Step EvaluateCall::NextStep() {
  Step step;
  if (finished_) return step;
  if (!writing_ && !end_.has_value() && NextEvent()) {
    writing_ = true;
    step.write = true;
  }
  if (!writing_ && starting_reads_ == 0 && (end_.has_value() || evaluation_told_)) {
    finished_ = true;
    step.finish = true;
    step.status = end_.value_or(absl::OkStatus());
    return step;
  }
  if (want_read_ && !end_.has_value()) {
    want_read_ = false;
    waiting_since_ = absl::Now();
    ++starting_reads_;
    step.read = true;
  }
  return step;
}

void EvaluateCall::Advance() {
  // Another thread may end the call as soon as the lock is released.
  const auto self = shared_from_this();
  while (true) {
    Step step;
    {
      MutexLock lock(&mutex_);
      step = NextStep();
    }
    if (step.read) StartRead(&bytes_);
    if (step.write) StartWrite(&response_);
    if (step.finish) Finish(scope_.Finish(step.status));
    if (!step.read) return;
    MutexLock lock(&mutex_);
    --starting_reads_;  // and look again: an end may have waited for this
  }
}

}  // namespace phimap
