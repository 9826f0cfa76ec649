#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls.h"
#include "client/cpp/grpc_status.h"
#include "core/digest/named_columns.h"
#include "core/status/status_macros.h"

namespace phimap::client {
namespace {

// One attempt at an Evaluate call. Used once.
class EvaluateCall {
 public:
  using Stream = grpc::ClientReaderWriterInterface<v1::EvaluateRequest, v1::EvaluateResponse>;

  EvaluateCall(const EvaluateOptions& options, LabeledRowSource& source,
               const EvaluateObserver& observer)
      : options_(options), source_(source), observer_(observer) {}

  absl::StatusOr<v1::Evaluation> Run(v1::EvaluationService::StubInterface& stub,
                                     RevisionMemory& revisions, CancelToken& cancel) {
    grpc::ClientContext context;
    SetDeadline(context, absl::Now() + options_.timeout);
    const RevisionMemory::Asked asked = revisions.AddTo(context);
    const std::unique_ptr<Stream> stream = stub.Evaluate(&context);
    const CancelToken::Registration registration = cancel.OnCancel([this, &context] {
      context.TryCancel();
      source_.Interrupt();
    });
    std::thread reader([this, &stream] { ReadEvents(*stream); });
    const absl::Status sent = Send(*stream);
    if (!sent.ok()) context.TryCancel();
    reader.join();
    const absl::Status status = FromGrpc(stream->Finish());
    revisions.Note(context, status, asked);
    if (cancel.cancelled()) return absl::CancelledError("the evaluation was cancelled");
    PHIMAP_RETURN_IF_ERROR(sent);
    PHIMAP_RETURN_IF_ERROR(status);
    if (evaluation_.has_value()) return *std::move(evaluation_);
    return absl::InternalError("the server ended the evaluation without a result");
  }

 private:
  // A failed Write means only that the stream has ended; Finish returns the reason.
  absl::Status Send(Stream& stream) {
    v1::EvaluateRequest request;
    ToSpec(*request.mutable_spec());
    if (!stream.Write(request) || !WaitUntilAccepted()) return absl::OkStatus();
    int64_t rows_sent = 0;
    while (true) {
      absl::StatusOr<ExampleBlock> block = source_.Next({});
      if (ended_) return absl::OkStatus();  // ReadEvents may have interrupted the source.
      PHIMAP_RETURN_IF_ERROR(block.status());
      const int32_t rows = block->rows();
      if (rows == 0) break;
      PHIMAP_RETURN_IF_ERROR(ToRequest(*std::move(block), request));
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

  // Blocks until the server accepts the call or ends it. Returns true if the server accepted the
  // call. A server that refuses a call because of its revision does so before any rows are sent. So
  // another call can send all rows, even from a source that can be read only once.
  bool WaitUntilAccepted() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return accepted_ || ended_; });
    return accepted_;
  }

  void ToSpec(v1::EvaluationSpec& spec) const {
    spec.set_reference(options_.reference);
    spec.set_learner(options_.learner);
    spec.set_held_out(options_.held_out);
    spec.set_folds(options_.folds);
    spec.set_seed(options_.seed);
    spec.set_confidence(options_.confidence);
    spec.set_expected_digest(options_.expected_digest);
    spec.set_column_names_hash(ColumnNamesHash(source_.column_names()));
  }

  absl::Status ToRequest(ExampleBlock block, v1::EvaluateRequest& request) {
    std::vector<std::string> labels = source_.TakeLabels();
    if (static_cast<int64_t>(labels.size()) != block.rows()) {
      return absl::InternalError(
          absl::StrCat("the source has ", labels.size(), " labels for ", block.rows(), " rows"));
    }
    v1::LabeledExamples& examples = *request.mutable_examples();
    examples.Clear();
    ToExamples(std::move(block), *examples.mutable_examples());
    for (std::string& label : labels) examples.add_labels(std::move(label));
    return absl::OkStatus();
  }

  void ReadEvents(Stream& stream) {
    v1::EvaluateResponse event;
    while (stream.Read(&event)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!std::exchange(accepted_, true)) changed_.notify_all();
      if (event.has_evaluation()) evaluation_ = std::move(*event.mutable_evaluation());
      if (event.has_progress()) {
        progress_.server = std::move(*event.mutable_progress());
        if (observer_) observer_(progress_);
      }
    }
    bool in_use = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
      in_use = accepted_;
    }
    changed_.notify_all();
    // Leaves an unused source uninterrupted, because a source that cannot rewind would stay
    // interrupted for ever.
    if (in_use) source_.Interrupt();
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
  std::atomic<bool> ended_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool accepted_ = false;                     // guarded by mutex_
  EvaluateProgress progress_;                 // guarded by mutex_
  std::optional<v1::Evaluation> evaluation_;  // guarded by mutex_ until the reader ends
};

}  // namespace

absl::StatusOr<v1::Evaluation> CallEvaluate(v1::EvaluationService::StubInterface& stub,
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
