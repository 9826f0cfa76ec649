#include "client/cpp/transform_stream_call.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/row_messages.h"
#include "core/status/status_macros.h"

namespace phimap::client {
namespace {

// A request and its answer aim at this size, which hides the cost of a message and keeps a window
// of them small.
constexpr int64_t kMessageSizeBytes = 1 << 20;
constexpr int64_t kMaxRowsPerRequest = 65'536;  // The API's limit.
// Sent before the width of the features is known: few enough that even 65,536 doubles a row stay
// under a quarter of the message limit.
constexpr int32_t kFirstRows = 16;

}  // namespace

TransformStreamCall::TransformStreamCall(v1::TransformService::StubInterface& stub,
                                         std::string reference, RowSource& source,
                                         const FeatureSink& sink,
                                         const TransformStreamOptions& options, CancelToken& cancel)
    : stub_(stub),
      reference_(std::move(reference)),
      source_(source),
      sink_(sink),
      options_(options),
      cancel_(cancel) {}

absl::StatusOr<TransformStreamResult> TransformStreamCall::Run() {
  grpc::ClientContext context;
  SetDeadline(context, absl::Now() + options_.timeout);
  std::unique_ptr<Stream> stream = stub_.TransformStream(&context);
  const CancelToken::Registration registration = cancel_.OnCancel([this, &context] {
    context.TryCancel();
    source_.Interrupt();
  });
  absl::Status received;
  std::thread reader([&] { received = Receive(*stream, context); });
  const absl::Status sent = Send(*stream);
  if (!sent.ok()) context.TryCancel();
  reader.join();
  const absl::Status status = FromGrpc(stream->Finish());
  if (cancel_.cancelled()) return absl::CancelledError("the transform was cancelled");
  PHIMAP_RETURN_IF_ERROR(received);
  PHIMAP_RETURN_IF_ERROR(sent);
  PHIMAP_RETURN_IF_ERROR(status);
  if (!unanswered_rows_.empty()) {
    return absl::InternalError(absl::StrCat("the server ended the stream and left ",
                                            unanswered_rows_.size(), " requests unanswered"));
  }
  return std::move(result_);
}

absl::Status TransformStreamCall::Send(Stream& stream) {
  for (bool first = true;; first = false) {
    const BlockLimits limits = WaitForRoom();
    if (limits.rows == 0) return absl::OkStatus();  // Finish says why.
    absl::StatusOr<ExampleBlock> block = source_.Next(limits);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return absl::OkStatus();  // The source may have been interrupted for this.
      PHIMAP_RETURN_IF_ERROR(block.status());
      if (!block->empty()) unanswered_rows_.push_back(block->rows());
    }
    if (block->empty()) {
      if (first) return absl::InvalidArgumentError("the input has no rows");
      stream.WritesDone();
      return absl::OkStatus();
    }
    v1::TransformStreamRequest request;
    if (first) {
      request.set_reference(reference_);
      request.set_expected_digest(options_.expected_digest);
    }
    request.set_residual(options_.residual);
    ToExamples(*std::move(block), *request.mutable_examples());
    if (!stream.Write(request)) return absl::OkStatus();
  }
}

BlockLimits TransformStreamCall::WaitForRoom() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] {
    if (ended_ || unanswered_rows_.empty()) return true;
    // How many rows fit is known only after the first answer.
    if (options_.rows_per_request == 0 && feature_row_bytes_ == 0) return false;
    return static_cast<int>(unanswered_rows_.size()) < options_.window;
  });
  return ended_ ? BlockLimits{.rows = 0} : LimitsOfRequest();
}

BlockLimits TransformStreamCall::LimitsOfRequest() const {
  if (options_.rows_per_request > 0) {
    return {.rows = options_.rows_per_request, .bytes = std::numeric_limits<int64_t>::max()};
  }
  if (feature_row_bytes_ == 0) return {.rows = kFirstRows, .bytes = kMessageSizeBytes};
  const int64_t rows = kMessageSizeBytes / feature_row_bytes_;
  return {.rows = static_cast<int32_t>(std::clamp<int64_t>(rows, 1, kMaxRowsPerRequest)),
          .bytes = kMessageSizeBytes};
}

absl::Status TransformStreamCall::Receive(Stream& stream, grpc::ClientContext& context) {
  absl::Status status;
  v1::TransformStreamResponse answer;
  while (stream.Read(&answer)) {
    if (!status.ok()) continue;  // Drains what came before the cancel took effect.
    status = HandleAnswer(std::move(answer));
    if (!status.ok()) {
      context.TryCancel();
      End();
    }
  }
  End();
  return status;
}

absl::Status TransformStreamCall::HandleAnswer(v1::TransformStreamResponse answer) {
  int32_t expected_rows;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (unanswered_rows_.empty()) {
      return absl::InternalError("the server sent an answer without a request");
    }
    expected_rows = unanswered_rows_.front();
  }
  if (answer.has_version()) result_.version = std::move(*answer.mutable_version());
  PHIMAP_ASSIGN_OR_RETURN(RowBlock features,
                          FromAnswer(std::move(*answer.mutable_features()), expected_rows));
  if (options_.residual) {
    PHIMAP_ASSIGN_OR_RETURN(features, WithLastColumn(std::move(features), answer.residuals()));
  }
  const int64_t row_bytes = features.columns * ValueSizeBytes(features.type);
  PHIMAP_RETURN_IF_ERROR(sink_(std::move(features)));
  result_.rows += expected_rows;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    unanswered_rows_.pop_front();
    feature_row_bytes_ = row_bytes;
  }
  changed_.notify_all();
  return absl::OkStatus();
}

void TransformStreamCall::End() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  source_.Interrupt();
}

}  // namespace phimap::client
