
// A build, sent again until the server has it.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/revision_memory.h"
#include "core/status/status_macros.h"
#include "google/protobuf/duration.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"

namespace phimap::client {

std::string RandomUuid() {
  std::random_device entropy;
  std::array<uint32_t, 4> words;
  for (uint32_t& word : words) word = entropy();
  words[1] = (words[1] & 0xffff0fff) | 0x00004000;  // version 4
  words[2] = (words[2] & 0x3fffffff) | 0x80000000;  // variant 1
  return absl::StrFormat("%08x-%04x-%04x-%04x-%04x%08x", words[0], words[1] >> 16,
                         words[1] & 0xffff, words[2] >> 16, words[2] & 0xffff, words[3]);
}

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

namespace {

v1::BuildRequest SpecMessage(const BuildOptions& options, const RowSource& source) {
  v1::BuildRequest request;
  ToSpec(options, *request.mutable_spec());
  for (std::string& name : source.column_names()) {
    request.mutable_spec()->add_column_names(std::move(name));
  }
  return request;
}

// Implements Client::Build with two threads. The caller's thread sends the rows, while the second
// thread reads events. So a server error is noticed while rows are still being sent: the error ends
// the stream, which makes a blocked Write fail, and the second thread interrupts the source.
//
// Each attempt sends the spec and waits for `accepted` before it reads rows. The reason is that the
// input may be readable only once, and the server may refuse the build. There are two cases:
//   attached      The server has the build with all its rows. Follow the build.
//   not attached  The server does not know the build. Send all rows. If an earlier attempt has read
//                 some of them, rewind the source first; give up if the source cannot rewind.
//
// Used once, by one thread.
class BuildCall {
 public:
  // REQUIRES: options.build_id is set; all references outlive the call.
  BuildCall(v1::MappingService::StubInterface& stub, RevisionMemory& revisions,
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

  absl::StatusOr<v1::Version> Run() {
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

 private:
  using Stream = grpc::ClientReaderWriterInterface<v1::BuildRequest, v1::BuildResponse>;

  // How one attempt ended.
  struct Outcome {
    absl::Status status;
    // True if another attempt cannot help: the input failed, or the server sent no version.
    bool final = false;
  };

  Outcome RunAttempt() {
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

  // Sends the spec, then the rows and `finish` unless the server does not need them.
  absl::Status Send(Stream& stream) {
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

  absl::Status SendRows(Stream& stream) {
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

  void ReadEvents(Stream& stream) {
    v1::BuildResponse event;
    while (stream.Read(&event)) HandleEvent(std::move(event));
    bool in_use = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
      in_use = accepted_;
    }
    changed_.notify_all();
    // Leaves an unused source uninterrupted. A source that cannot rewind would stay interrupted,
    // and the next attempt may need all its rows.
    if (in_use) source_.Interrupt();
  }

  void HandleEvent(v1::BuildResponse event) {
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

  // Blocks until the server accepts this attempt or ends it. Returns true if the server accepted.
  bool WaitUntilAccepted() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return accepted_ || ended_; });
    return accepted_;
  }

  // Returns true if the server needs no more rows: the stream has ended, or this attempt is
  // attached to a build that has all rows.
  bool WantsNoRows() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_ || attached_;
  }

  // Returns the wait before the next attempt; nullopt if there must be no further attempt.
  std::optional<absl::Duration> WaitAfter(const Outcome& outcome, int attempt) {
    if (outcome.final || attempt >= retry_.max_attempts) return std::nullopt;
    const absl::Duration asked = RetryDelay(outcome.status).value_or(absl::ZeroDuration());
    const absl::Duration wait = std::max(retry_.BackoffBefore(attempt + 1), asked);
    if (absl::Now() + wait >= deadline_) return std::nullopt;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ever_sent_ && source_used_ && !source_.CanRewind()) return std::nullopt;
    // A server that reports that it did not begin the call is worth another attempt. Any other
    // server that never accepted may be the wrong one.
    if (WasNotBegun(outcome.status)) return wait;
    if (!ever_accepted_) return std::nullopt;
    // The server may notice a broken stream later than this client does, and holds the build id
    // until then.
    const bool still_held = attempt > 1 && absl::IsAborted(outcome.status);
    return IsBrokenConnection(outcome.status) || still_held ? std::optional(wait) : std::nullopt;
  }

  void Report() {
    if (observer_) observer_(progress_);
  }

  v1::MappingService::StubInterface& stub_;
  RevisionMemory& revisions_;
  const RetryPolicy retry_;
  const BuildOptions& options_;
  RowSource& source_;
  const BuildObserver& observer_;
  CancelToken& cancel_;
  const absl::Time deadline_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // State of the current attempt; guarded by mutex_.
  bool accepted_ = false;
  bool attached_ = false;
  bool ended_ = false;
  // State of the whole call; guarded by mutex_.
  bool ever_accepted_ = false;
  bool ever_sent_ = false;
  // True once an attempt was accepted: rows may have been read from the source, or the source may
  // have been interrupted. Used only by the caller's thread.
  bool source_used_ = false;
  // Guarded by mutex_.
  BuildProgress progress_;
  // Guarded by mutex_ until the reading thread has ended.
  std::optional<v1::Version> version_;
};

}  // namespace

absl::StatusOr<v1::Version> CallBuild(v1::MappingService::StubInterface& stub,
                                      RevisionMemory& revisions, const RetryPolicy& retry,
                                      const BuildOptions& options, RowSource& source,
                                      const BuildObserver& observer, CancelToken& cancel) {
  return BuildCall(stub, revisions, retry, options, source, observer, cancel).Run();
}

}  // namespace phimap::client
