#include "client/cpp/build_call.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/row_messages.h"
#include "core/status/status_macros.h"

namespace phimap::client {
namespace {

v1::BuildRequest SpecMessage(const BuildOptions& options) {
  v1::BuildRequest request;
  ToSpec(options, *request.mutable_spec());
  return request;
}

}  // namespace

void ToSpec(const BuildOptions& options, v1::BuildSpec& spec) {
  spec.set_mapping(options.mapping);
  spec.set_build_id(options.build_id);
  spec.mutable_spec()->set_text(options.mapping_text);
  spec.set_kernel(options.kernel_text);
  spec.set_standardize(options.standardize);
  spec.set_seed(options.seed);
}

BuildCall::BuildCall(v1::MappingService::StubInterface& stub, const RetryPolicy& retry,
                     const BuildOptions& options, RowSource& source, const BuildObserver& observer,
                     CancelToken& cancel)
    : stub_(stub),
      retry_(retry),
      options_(options),
      source_(source),
      observer_(observer),
      cancel_(cancel),
      deadline_(absl::Now() + options.timeout) {}

absl::StatusOr<v1::Version> BuildCall::Run() {
  for (int attempt = 1;; ++attempt) {
    const Outcome outcome = RunAttempt(attempt);
    // A version that was sent is stored for good, however the stream ended after it.
    if (version_.has_value()) return *std::move(version_);
    if (cancel_.cancelled()) return absl::CancelledError("the build was cancelled");
    if (!MayRetry(outcome, attempt)) return outcome.status;
    if (cancel_.WaitFor(retry_.BackoffBefore(attempt + 1))) {
      return absl::CancelledError("the build was cancelled");
    }
  }
}

bool BuildCall::MayRetry(const Outcome& outcome, int attempt) {
  if (outcome.final || attempt >= retry_.max_attempts || absl::Now() >= deadline_) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ever_accepted_ || (!ever_sent_ && !source_.CanRewind())) return false;
  if (IsBrokenConnection(outcome.status)) return true;
  // The server may notice a broken stream later than we do and hold the id for it until then.
  return attempt > 1 && outcome.status.code() == absl::StatusCode::kAborted;
}

BuildCall::Outcome BuildCall::RunAttempt(int attempt) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    accepted_ = attached_ = ended_ = false;
  }
  grpc::ClientContext context;
  SetDeadline(context, deadline_);
  std::unique_ptr<Stream> stream = stub_.Build(&context);
  const CancelToken::Registration registration = cancel_.OnCancel([this, &context] {
    context.TryCancel();
    source_.Interrupt();
  });
  std::thread reader([this, &stream] { ReadEvents(*stream); });
  const absl::Status sent = Send(*stream, attempt);
  if (!sent.ok()) context.TryCancel();
  reader.join();
  const absl::Status status = FromGrpc(stream->Finish());
  if (!sent.ok()) return {sent, /*final=*/true};
  if (status.ok()) {
    return {absl::InternalError("the server ended the build without a version"), /*final=*/true};
  }
  return {status, /*final=*/false};
}

absl::Status BuildCall::Send(Stream& stream, int attempt) {
  // A Write that fails says only that the stream is over; Finish says why.
  if (!stream.Write(SpecMessage(options_))) return absl::OkStatus();
  if (attempt > 1) {
    if (!WaitUntilAccepted()) return absl::OkStatus();
    if (!WantsNoRows()) {
      if (!source_.CanRewind()) {
        return absl::AbortedError(
            "the connection broke, the server no longer knows the build, and the input can be "
            "read only once: start the build again");
      }
      PHIMAP_RETURN_IF_ERROR(source_.Rewind());
    }
  }
  PHIMAP_RETURN_IF_ERROR(SendRows(stream));
  stream.WritesDone();
  return absl::OkStatus();
}

absl::Status BuildCall::SendRows(Stream& stream) {
  int64_t rows_sent = 0;
  while (!WantsNoRows()) {
    absl::StatusOr<ExampleBlock> block = source_.Next({});
    if (WantsNoRows()) break;  // The source may have been interrupted for this: not its error.
    PHIMAP_RETURN_IF_ERROR(block.status());
    v1::BuildRequest request;
    const int32_t rows = block->rows();
    if (rows == 0) {
      request.mutable_finish()->set_row_count(rows_sent);
    } else {
      ToExamples(*std::move(block), *request.mutable_examples());
    }
    if (!stream.Write(request)) return absl::OkStatus();
    rows_sent += rows;
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_.rows_sent = rows_sent;
    progress_.sent = rows == 0;
    ever_sent_ |= progress_.sent;
    Report();
    if (rows == 0) break;
  }
  return absl::OkStatus();
}

void BuildCall::ReadEvents(Stream& stream) {
  v1::BuildResponse event;
  while (stream.Read(&event)) HandleEvent(std::move(event));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  source_.Interrupt();
}

void BuildCall::HandleEvent(v1::BuildResponse event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (event.has_accepted()) {
    accepted_ = ever_accepted_ = true;
    attached_ = event.accepted().attached();
    if (attached_) {
      ever_sent_ = true;
      progress_.sent = true;
      source_.Interrupt();
    }
    changed_.notify_all();
  } else if (event.has_progress()) {
    progress_.job = std::move(*event.mutable_progress());
    Report();
  } else if (event.has_version()) {
    version_ = std::move(*event.mutable_version());
  }
}

bool BuildCall::WaitUntilAccepted() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return accepted_ || ended_; });
  return accepted_;
}

bool BuildCall::WantsNoRows() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ended_ || attached_;
}

void BuildCall::Report() {
  if (observer_) observer_(progress_);
}

}  // namespace phimap::client
