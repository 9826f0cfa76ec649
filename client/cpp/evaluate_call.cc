#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "client/cpp/calls.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/row_stream.h"
#include "core/digest/named_columns.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::client {
void ToSpec(const EvaluateOptions& options, const std::vector<std::string>& column_names,
            v1::EvaluationSpec& spec) {
  spec.set_reference(options.reference);
  spec.set_learner(options.learner);
  spec.set_held_out(options.held_out);
  spec.set_folds(options.folds);
  spec.set_seed(options.seed);
  spec.set_confidence(options.confidence);
  spec.set_expected_digest(options.expected_digest);
  spec.set_column_names_hash(ColumnNamesHash(column_names));
}

namespace {

// One attempt at an Evaluate call. Used once.
class EvaluateCall {
 public:
  using Stream = RowStream<v1::EvaluateRequest, v1::EvaluateResponse>;

  EvaluateCall(const EvaluateOptions& options, LabeledRowSource& source,
               const EvaluateObserver& observer)
      : options_(options), source_(source), observer_(observer) {}

  absl::StatusOr<v1::Evaluation> Run(v1::LearningService::StubInterface& stub,
                                     RevisionMemory& revisions, CancelToken& cancel) {
    grpc::ClientContext context;
    SetDeadline(context, absl::Now() + options_.timeout);
    const auto take = [this](v1::EvaluateResponse event) { Take(std::move(event)); };
    const Stream::Outcome outcome =
        Stream(source_, take)
            .Run(
                context, revisions, revisions.AddTo(context), cancel,
                [&stub](grpc::ClientContext* c) { return stub.Evaluate(c); },
                [this](Stream& stream) { return Send(stream); });
    if (cancel.cancelled()) return absl::CancelledError("the evaluation was cancelled");
    PHIMAP_RETURN_IF_ERROR(outcome.sent);
    PHIMAP_RETURN_IF_ERROR(outcome.status);
    if (evaluation_.has_value()) return *std::move(evaluation_);
    return absl::InternalError("the server ended the evaluation without a result");
  }

 private:
  // A failed Write means only that the stream has ended; its outcome has the reason. A server that
  // refuses a call because of its revision does so before it accepts the call, so that another call
  // can send all rows, even from a source that can be read only once.
  absl::Status Send(Stream& stream) {
    v1::EvaluateRequest request;
    ToSpec(options_, source_.column_names(), *request.mutable_spec());
    if (!stream.Write(request) || !stream.WaitUntilAccepted()) return absl::OkStatus();
    int64_t rows_sent = 0;
    while (true) {
      absl::StatusOr<ExampleBlock> block = source_.Next({});
      if (stream.ended()) return absl::OkStatus();  // The source may have been interrupted.
      PHIMAP_RETURN_IF_ERROR(block.status());
      const int32_t rows = block->rows();
      if (rows == 0) break;
      PHIMAP_RETURN_IF_ERROR(
          ToLabeledExamples(*std::move(block), source_, *request.mutable_examples()));
      if (!stream.Write(request)) return absl::OkStatus();
      rows_sent += rows;
      Sent(rows_sent, /*all=*/false);
    }
    request.mutable_finish()->set_row_count(rows_sent);
    if (stream.Write(request)) {
      stream.WritesDone();
      Sent(rows_sent, /*all=*/true);
    }
    return absl::OkStatus();
  }

  void Take(v1::EvaluateResponse event) {
    if (event.has_evaluation()) evaluation_ = std::move(*event.mutable_evaluation());
    if (!event.has_progress()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_.server = std::move(*event.mutable_progress());
    if (observer_) observer_(progress_);
  }

  void Sent(int64_t rows, bool all) {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_.rows_sent = rows;
    progress_.sent = all;
    if (observer_) observer_(progress_);
  }

  const EvaluateOptions& options_;
  LabeledRowSource& source_;
  const EvaluateObserver& observer_;

  std::mutex mutex_;
  EvaluateProgress progress_;                 // guarded by mutex_
  std::optional<v1::Evaluation> evaluation_;  // of the reading thread until it ends
};

}  // namespace

absl::StatusOr<v1::Evaluation> CallEvaluate(v1::LearningService::StubInterface& stub,
                                            RevisionMemory& revisions,
                                            const EvaluateOptions& options,
                                            LabeledRowSource& source,
                                            const EvaluateObserver& observer, CancelToken& cancel) {
  absl::StatusOr<v1::Evaluation> evaluation =
      EvaluateCall(options, source, observer).Run(stub, revisions, cancel);
  if (!IsOfAnotherHistory(evaluation.status())) return evaluation;
  return EvaluateCall(options, source, observer).Run(stub, revisions, cancel);
}

}  // namespace phimap::client
