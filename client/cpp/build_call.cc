#include "client/cpp/build_call.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/retry_delay.h"
#include "client/cpp/row_messages.h"
#include "core/status/status_macros.h"

namespace phimap::client {
namespace {

v1::BuildRequest SpecMessage(const BuildOptions& options, const RowSource& source) {
  v1::BuildRequest request;
  ToSpec(options, *request.mutable_spec());
  for (std::string& name : source.column_names()) {
    request.mutable_spec()->add_column_names(std::move(name));
  }
  return request;
}

}  // namespace

void ToProto(absl::Duration duration, google::protobuf::Duration& out) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

void ToSpec(const BuildOptions& options, v1::BuildSpec& spec) {
  spec.set_mapping(options.mapping);
  spec.set_build_id(options.build_id);
  spec.mutable_spec()->set_text(options.mapping_text);
  spec.set_kernel(options.kernel_text);
  spec.set_standardize(options.standardize);
  spec.set_seed(options.seed);
  if (options.ttl != absl::InfiniteDuration()) ToProto(options.ttl, *spec.mutable_ttl());
}

BuildCall::BuildCall(v1::MappingService::StubInterface& stub, RevisionMemory& revisions,
                     const RetryPolicy& retry, const BuildOptions& options, RowSource& source,
                     const BuildObserver& observer, CancelToken& cancel)
    : stub_(stub),
      revisions_(revisions),
      retry_(retry),
      options_(options),
      source_(source),
      observer_(observer),
      cancel_(cancel),
      deadline_(absl::Now() + options.timeout) {}

absl::StatusOr<v1::Version> BuildCall::Run() {
  for (int attempt = 1;; ++attempt) {
    const Outcome outcome = RunAttempt();
    // A version that has arrived is stored permanently, even if the stream broke afterwards.
    if (version_.has_value()) return *std::move(version_);
    if (cancel_.cancelled()) return absl::CancelledError("the build was cancelled");
    const std::optional<absl::Duration> wait = WaitAfter(outcome, attempt);
    if (!wait.has_value()) return outcome.status;
    if (cancel_.WaitFor(*wait)) {
      return absl::CancelledError("the build was cancelled");
    }
  }
}

std::optional<absl::Duration> BuildCall::WaitAfter(const Outcome& outcome, int attempt) {
  if (outcome.final || attempt >= retry_.max_attempts) return std::nullopt;
  const absl::Duration asked = RetryDelay(outcome.status).value_or(absl::ZeroDuration());
  const absl::Duration wait = std::max(retry_.BackoffBefore(attempt + 1), asked);
  if (absl::Now() + wait >= deadline_) return std::nullopt;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ever_sent_ && source_used_ && !source_.CanRewind()) return std::nullopt;
  // A server that reports that it did not begin the call is worth another attempt. Any other server
  // that never accepted may be the wrong one.
  if (WasNotBegun(outcome.status)) return wait;
  if (!ever_accepted_) return std::nullopt;
  // The server may notice a broken stream later than this client does, and holds the build id until
  // then.
  const bool still_held = attempt > 1 && absl::IsAborted(outcome.status);
  return IsBrokenConnection(outcome.status) || still_held ? std::optional(wait) : std::nullopt;
}

BuildCall::Outcome BuildCall::RunAttempt() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    accepted_ = attached_ = ended_ = false;
  }
  grpc::ClientContext context;
  SetDeadline(context, deadline_);
  const RevisionMemory::Asked asked = revisions_.AskingForNone();
  std::unique_ptr<Stream> stream = stub_.Build(&context);
  const CancelToken::Registration registration = cancel_.OnCancel([this, &context] {
    context.TryCancel();
    source_.Interrupt();
  });
  std::thread reader([this, &stream] { ReadEvents(*stream); });
  const absl::Status sent = Send(*stream);
  if (!sent.ok()) context.TryCancel();
  reader.join();
  const absl::Status status = FromGrpc(stream->Finish());
  revisions_.Note(context, status, asked);
  if (!sent.ok()) return {sent, /*final=*/true};
  if (status.ok()) {
    return {absl::InternalError("the server ended the build without a version"), /*final=*/true};
  }
  return {status, /*final=*/false};
}

absl::Status BuildCall::Send(Stream& stream) {
  // A failed Write means only that the stream has ended; Finish returns the reason.
  if (!stream.Write(SpecMessage(options_, source_))) return absl::OkStatus();
  if (!WaitUntilAccepted()) return absl::OkStatus();
  if (std::exchange(source_used_, true) && !WantsNoRows()) {
    if (!source_.CanRewind()) {
      return absl::AbortedError(
          "the connection broke, the server no longer knows the build, and the input can be "
          "read only once: start the build again");
    }
    PHIMAP_RETURN_IF_ERROR(source_.Rewind());
  }
  PHIMAP_RETURN_IF_ERROR(SendRows(stream));
  stream.WritesDone();
  return absl::OkStatus();
}

absl::Status BuildCall::SendRows(Stream& stream) {
  int64_t rows_sent = 0;
  while (!WantsNoRows()) {
    absl::StatusOr<ExampleBlock> block = source_.Next({});
    if (WantsNoRows()) break;  // ReadEvents may have interrupted the source.
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
  bool in_use = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    in_use = accepted_;
  }
  changed_.notify_all();
  // Leaves an unused source uninterrupted. A source that cannot rewind would stay interrupted, and
  // the next attempt may need all its rows.
  if (in_use) source_.Interrupt();
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
