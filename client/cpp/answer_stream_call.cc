// A stream of rows to transform or to predict, which outlives the streams that carry it.
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/revision_memory.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "phimap/v1/predict_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::client {
namespace {

// Target size of a request, and of its answer. It is large enough to hide the cost of each message,
// and small enough that the few messages in flight stay in the cores' caches. Measured with streams
// to 2,048 features: messages of 256 KiB need a third more CPU time on both ends, and messages of 1
// MiB a sixth more. Messages of 2 MiB need twice as much CPU time on the server.
constexpr int64_t kMessageSizeBytes = 512 << 10;
constexpr int64_t kMaxRowsPerRequest = 65'536;  // The API's limit.
// Number of rows of the first request, before the width of the answers is known: so few that even
// 65,536 doubles per row stay under a quarter of the message limit.
constexpr int32_t kFirstRows = 16;
// Whether the server has no version of the requested digest, or does not support references by
// digest.
bool IsNowhere(const absl::Status& error) {
  const std::optional<ErrorDetail> detail = DetailOf(error);
  return detail.has_value() && (detail->reason == reason::kVersionNotFound ||
                                detail->reason == reason::kReferenceInvalid);
}

// Maximum wait before a retry, even if a server asks for a longer one.
constexpr absl::Duration kLongestWait = absl::Hours(1);

// What the calls of both kinds have in common.
struct Limits {
  int window = 8;
  int32_t rows_per_request = 0;
  absl::Duration timeout = absl::InfiniteDuration();
  std::function<void(const absl::Status&, absl::Duration)> on_retry = {};
};

struct AnsweredRows {
  v1::VersionRef version;
  int64_t rows = 0;
};

// Implements Client::TransformStream and PredictStream with three threads. The caller's thread
// reads the source and puts requests into a window. It waits while `window` requests are
// unanswered, so memory is bounded even if the sink is slow. A second thread runs one stream after
// another until all requests are answered: it reads the answers and feeds the sink. A third thread,
// one for each stream, sends the requests of the window.
//
// A request stays in the window until it is answered. If a stream breaks, the next stream begins
// with the first unanswered request. It asks for the version that answered before, by number and
// digest. This is always safe, because the calls change nothing. A refusal with a retry delay is
// treated like a broken stream. Each answer resets the count of attempts. A retry does not
// interrupt the source, which may be a pipe.
//
// `Kind` has the messages and the method:
//   using Request, Response;
//   std::unique_ptr<Stream> Open(grpc::ClientContext* context);
//   // Adds to a request what every request of the stream says.
//   void Fill(Request& request) const;
//   // Checks an answer to `rows` rows and passes it on. Returns the bytes of a row in it.
//   absl::StatusOr<int64_t> Take(Response answer, int32_t rows);
//
// Used once, by one thread.
template <typename Kind>
class AnswerStreamCall {
 public:
  // REQUIRES: all references outlive the call; window >= 1; rows_per_request >= 0.
  AnswerStreamCall(Kind& kind, RevisionMemory& revisions, const RetryPolicy& retry,
                   std::string reference, std::string digest, RowSource& source,
                   const Limits& options, CancelToken& cancel)
      : kind_(kind),
        revisions_(revisions),
        retry_(retry),
        source_(source),
        options_(options),
        cancel_(cancel),
        deadline_(absl::Now() + options.timeout),
        reference_(std::move(reference)),
        digest_(std::move(digest)),
        column_names_hash_(ColumnNamesHash(source.column_names())) {}

  absl::StatusOr<AnsweredRows> Run() {
    const CancelToken::Registration registration = cancel_.OnCancel([this] {
      Abandon();
      source_.Interrupt();
    });
    absl::Status streamed;
    std::thread streams([&] {
      streamed = RunStreams();
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
      }
      changed_.notify_all();
      source_.Interrupt();
    });
    const absl::Status read = ReadSource();
    if (!read.ok()) Abandon();
    streams.join();
    if (cancel_.cancelled()) return absl::CancelledError("the call was cancelled");
    PHIMAP_RETURN_IF_ERROR(read);
    PHIMAP_RETURN_IF_ERROR(streamed);
    return std::move(result_);
  }

 private:
  using Message = typename Kind::Request;
  using Answer = typename Kind::Response;
  using Stream = grpc::ClientReaderWriterInterface<Message, Answer>;

  struct Request {
    int32_t rows;
    std::shared_ptr<Message> message;
  };
  // End of one stream.
  struct Outcome {
    absl::Status status;
    // Whether the error is from the sink or the client itself, so that another attempt cannot help.
    bool final = false;
  };

  // Runs on the caller's thread. Fills the window until the source ends; returns its error, if any.
  absl::Status ReadSource() {
    for (bool first = true;; first = false) {
      const BlockLimits limits = WaitForCapacity();
      if (limits.rows == 0) return absl::OkStatus();  // RunStreams returns the reason.
      absl::StatusOr<ExampleBlock> block = source_.Next(limits);
      const bool ended = block.ok() && block->empty();
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (over_)
          return absl::OkStatus();  // `Run` interrupts the source when the streams are over.
        PHIMAP_RETURN_IF_ERROR(block.status());
        if (ended) {
          if (first) return absl::InvalidArgumentError("the input has no rows");
          source_ended_ = true;
        } else {
          const int32_t block_rows = block->rows();
          auto request = std::make_shared<Message>();
          kind_.Fill(*request);
          ToExamples(*std::move(block), *request->mutable_examples());
          window_.push_back({block_rows, std::move(request)});
        }
      }
      changed_.notify_all();
      if (ended) return absl::OkStatus();
    }
  }

  // Waits for capacity in the window and returns the limits of the next request; 0 rows if no more
  // are wanted.
  BlockLimits WaitForCapacity() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] {
      if (over_ || abandoned_ || window_.empty()) return true;
      // The number of rows that fit is known only after the first answer.
      if (options_.rows_per_request == 0 && answer_row_bytes_ == 0) return false;
      return static_cast<int>(window_.size()) < options_.window;
    });
    return over_ || abandoned_ ? BlockLimits{.rows = 0} : LimitsOfRequest();
  }

  BlockLimits LimitsOfRequest() const {
    if (options_.rows_per_request > 0) {
      return {.rows = options_.rows_per_request, .bytes = std::numeric_limits<int64_t>::max()};
    }
    if (answer_row_bytes_ == 0) return {.rows = kFirstRows, .bytes = kMessageSizeBytes};
    const int64_t rows = kMessageSizeBytes / answer_row_bytes_;
    return {.rows = static_cast<int32_t>(std::clamp<int64_t>(rows, 1, kMaxRowsPerRequest)),
            .bytes = kMessageSizeBytes};
  }

  // Runs on the second thread. Opens streams until all rows are answered or retries cannot help.
  absl::Status RunStreams() {
    // The error after which the version's number was replaced by its digest; OK if it was not
    // replaced.
    absl::Status refused;
    while (WaitForRequest()) {
      const Outcome outcome = RunStream();
      if (outcome.status.ok()) continue;
      if (!outcome.final && LookElsewhere(outcome.status)) {
        refused = outcome.status;
        continue;
      }
      // No version has the digest either, so report why the number was refused.
      if (!refused.ok() && IsNowhere(outcome.status)) return refused;
      if (!WaitToRetry(outcome)) return outcome.status;
    }
    return absl::OkStatus();
  }

  // Waits for a request to send. False if none is left.
  bool WaitForRequest() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return abandoned_ || source_ended_ || !window_.empty(); });
    return !abandoned_ && !window_.empty();
  }

  Outcome RunStream() {
    grpc::ClientContext context;
    SetDeadline(context, deadline_);
    const RevisionMemory::Asked asked = revisions_.AddTo(context);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (abandoned_) return {absl::CancelledError("the call was abandoned"), /*final=*/true};
      context_ = &context;
      stream_ended_ = false;
      first_of_stream_ = true;
      sent_ = 0;
    }
    const std::unique_ptr<Stream> stream = kind_.Open(&context);
    std::thread sender([&] { Send(*stream); });
    const absl::Status received = Receive(*stream, context);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stream_ended_ = true;
    }
    changed_.notify_all();
    sender.join();
    const absl::Status status = FromGrpc(stream->Finish());
    revisions_.Note(context, status, asked);
    const std::lock_guard<std::mutex> lock(mutex_);
    context_ = nullptr;
    if (!received.ok()) return {received, /*final=*/true};
    if (!status.ok()) return {status, /*final=*/false};
    if (window_.empty() && source_ended_) return {};
    return {absl::InternalError(absl::StrCat("the server ended the stream and left ",
                                             CountOf(window_.size(), "request"), " unanswered")),
            /*final=*/true};
  }

  // If the pinned number was refused with this error, switches to the digest.
  bool LookElsewhere(const absl::Status& error) {
    const std::optional<ErrorDetail> detail = DetailOf(error);
    if (!detail.has_value() ||
        (detail->reason != reason::kVersionNotFound && detail->reason != reason::kDigestMismatch)) {
      return false;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t at = reference_.find('@');
    // A number belongs to one server; the digest identifies the version elsewhere.
    if (digest_.empty() || at == std::string::npos || at + 1 == reference_.size() ||
        !std::all_of(reference_.begin() + static_cast<int64_t>(at) + 1, reference_.end(),
                     absl::ascii_isdigit)) {
      return false;
    }
    reference_ = absl::StrCat(reference_.substr(0, at), "@sha256:", digest_);
    return true;
  }

  // Waits until another stream may be opened. False if none may.
  bool WaitToRetry(const Outcome& outcome) {
    if (IsOfAnotherHistory(outcome.status) && ++refused_ <= kHistoriesLeft) return true;
    const std::optional<absl::Duration> asked = RetryDelay(outcome.status);
    const int attempts =
        result_.rows > 0 ? retry_.max_attempts : std::min(retry_.max_attempts, kAttemptsToBegin);
    if (outcome.final || !asked.has_value() || attempt_ >= attempts) return false;
    ++attempt_;
    const absl::Duration wait =
        std::min(std::max(retry_.BackoffBefore(attempt_), *asked), kLongestWait);
    if (absl::Now() + wait >= deadline_) return false;
    if (options_.on_retry) options_.on_retry(outcome.status, wait);
    std::unique_lock<std::mutex> lock(mutex_);
    return !changed_.wait_for(lock, absl::ToChronoNanoseconds(wait), [this] { return abandoned_; });
  }

  // Reads all answers. After an error of the sink or a wrong answer, cancels the stream and drains
  // it.
  absl::Status Receive(Stream& stream, grpc::ClientContext& context) {
    absl::Status status;
    Answer answer;
    while (stream.Read(&answer)) {
      if (!status.ok()) continue;  // Drains what came before the cancel took effect.
      status = HandleAnswer(std::move(answer));
      if (!status.ok()) context.TryCancel();
    }
    return status;
  }

  absl::Status HandleAnswer(Answer answer) {
    int32_t expected_rows;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (sent_ == 0) return absl::InternalError("the server sent an answer without a request");
      expected_rows = window_.front().rows;
    }
    if (answer.has_version()) result_.version = std::move(*answer.mutable_version());
    PHIMAP_ASSIGN_OR_RETURN(const int64_t row_bytes, kind_.Take(std::move(answer), expected_rows));
    result_.rows += expected_rows;
    attempt_ = 1;
    refused_ = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      window_.pop_front();
      --sent_;
      answer_row_bytes_ = row_bytes;
      if (result_.version.number() > 0) {
        reference_ = ReferenceTo(result_.version);
        digest_ = result_.version.digest();
      }
    }
    changed_.notify_all();
    return absl::OkStatus();
  }

  // Runs on the third thread. Sends the requests of the window, also those added later, until the
  // stream ends.
  void Send(Stream& stream) {
    while (const std::shared_ptr<const Message> request = NextToSend()) {
      if (!stream.Write(*request)) return;  // Finish returns the reason.
    }
    stream.WritesDone();
  }

  // The next request of this stream; null if there is none left.
  std::shared_ptr<const Message> NextToSend() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] {
      return stream_ended_ || abandoned_ || source_ended_ || sent_ < window_.size();
    });
    if (stream_ended_ || abandoned_ || sent_ == window_.size()) return nullptr;
    const std::shared_ptr<Message>& request = window_[sent_++].message;
    const bool first = std::exchange(first_of_stream_, false);
    request->set_reference(first ? reference_ : "");
    request->set_expected_digest(first ? digest_ : "");
    request->set_column_names_hash(first ? column_names_hash_ : 0);
    return request;
  }

  // Ends the open stream; no further stream is opened.
  void Abandon() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      abandoned_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
    changed_.notify_all();
  }

  Kind& kind_;
  RevisionMemory& revisions_;
  const RetryPolicy retry_;
  RowSource& source_;
  const Limits options_;
  CancelToken& cancel_;
  const absl::Time deadline_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool source_ended_ = false;
  bool stream_ended_ = false;
  bool abandoned_ = false;
  // True once no further stream will be opened.
  bool over_ = false;
  // Requests without an answer, in order. The first sent_ of them were sent on the open stream.
  std::deque<Request> window_;
  size_t sent_ = 0;
  bool first_of_stream_ = true;
  // Reference for the next stream. Once a version has answered, the reference is that version.
  std::string reference_;
  std::string digest_;
  // 0 if the columns have no names.
  const uint64_t column_names_hash_;
  // State of the stream that is open.
  grpc::ClientContext* context_ = nullptr;
  // Size of a row of the answer, 0 until the first answer.
  int64_t answer_row_bytes_ = 0;
  // Number of streams since the last answer. Used only by the second thread; so is result_ until
  // that thread has ended.
  int attempt_ = 1;
  // Number of refusals because of a revision of another history, since the last answer.
  int refused_ = 0;
  AnsweredRows result_;
};

class TransformKind {
 public:
  using Request = v1::TransformRequest;
  using Response = v1::TransformResponse;

  TransformKind(v1::TransformService::StubInterface& stub, const FeatureSink& sink, bool residual)
      : stub_(stub), sink_(sink), residual_(residual) {}

  auto Open(grpc::ClientContext* context) { return stub_.TransformStream(context); }
  void Fill(Request& request) const { request.set_residual(residual_); }
  absl::StatusOr<int64_t> Take(Response answer, int32_t rows) {
    PHIMAP_ASSIGN_OR_RETURN(RowBlock features,
                            FromAnswer(std::move(*answer.mutable_features()), rows));
    if (residual_) {
      PHIMAP_ASSIGN_OR_RETURN(features, WithLastColumn(std::move(features), answer.residuals()));
    }
    const int64_t row_bytes = features.columns * ValueSizeBytes(features.type);
    PHIMAP_RETURN_IF_ERROR(sink_(std::move(features)));
    return row_bytes;
  }

 private:
  v1::TransformService::StubInterface& stub_;
  const FeatureSink& sink_;
  const bool residual_;
};

class PredictKind {
 public:
  using Request = v1::PredictRequest;
  using Response = v1::PredictResponse;

  PredictKind(v1::PredictService::StubInterface& stub, const PredictionSink& sink,
              const WantedOutputs& wanted)
      : stub_(stub), sink_(sink), wanted_(wanted) {}

  auto Open(grpc::ClientContext* context) { return stub_.PredictStream(context); }
  void Fill(Request& request) const { ToRequest(wanted_, request); }
  absl::StatusOr<int64_t> Take(Response answer, int32_t rows) {
    // The names of the classes come with the first answer of each stream.
    const auto bytes = static_cast<int64_t>(answer.ByteSizeLong());
    if (answer.class_names_size() > 0) {
      classes_.assign(answer.class_names().begin(), answer.class_names().end());
    }
    PHIMAP_ASSIGN_OR_RETURN(Predictions predictions,
                            FromPrediction(std::move(answer), classes_, rows));
    PHIMAP_RETURN_IF_ERROR(sink_(std::move(predictions)));
    return std::max<int64_t>(1, bytes / rows);
  }

 private:
  v1::PredictService::StubInterface& stub_;
  const PredictionSink& sink_;
  const WantedOutputs wanted_;
  std::vector<std::string> classes_;
};

}  // namespace

absl::StatusOr<TransformStreamResult> CallTransformStream(
    v1::TransformService::StubInterface& stub, RevisionMemory& revisions, const RetryPolicy& retry,
    std::string reference, RowSource& source, const FeatureSink& sink,
    const TransformStreamOptions& options, CancelToken& cancel) {
  TransformKind kind(stub, sink, options.residual);
  PHIMAP_ASSIGN_OR_RETURN(
      AnsweredRows answered,
      AnswerStreamCall<TransformKind>(
          kind, revisions, retry, std::move(reference), options.expected_digest, source,
          {options.window, options.rows_per_request, options.timeout, options.on_retry}, cancel)
          .Run());
  return TransformStreamResult{std::move(answered.version), answered.rows};
}

absl::StatusOr<PredictStreamResult> CallPredictStream(
    v1::PredictService::StubInterface& stub, RevisionMemory& revisions, const RetryPolicy& retry,
    std::string reference, RowSource& source, const PredictionSink& sink,
    const PredictStreamOptions& options, CancelToken& cancel) {
  PredictKind kind(stub, sink, options.wanted);
  PHIMAP_ASSIGN_OR_RETURN(
      AnsweredRows answered,
      AnswerStreamCall<PredictKind>(
          kind, revisions, retry, std::move(reference), options.expected_digest, source,
          {options.window, options.rows_per_request, options.timeout, options.on_retry}, cancel)
          .Run());
  return PredictStreamResult{std::move(answered.version), answered.rows};
}

}  // namespace phimap::client
