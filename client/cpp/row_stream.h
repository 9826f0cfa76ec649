// One attempt at a call that streams rows to the server and events back: the part that Build and
// Evaluate share. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_ROW_STREAM_H_
#define PHIMAP_CLIENT_CPP_ROW_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/revision_memory.h"
#include "client/cpp/row_source.h"

namespace phimap::client {

// The caller's thread sends the rows, while a second thread reads events. So a server error is
// noticed while rows are still being sent: the error ends the stream, which makes a blocked Write
// fail, and the second thread interrupts the source.
//
// Rows are read only once the first event has come, because the input may be readable only once,
// and the server may refuse the call. Used once, by one thread.
template <typename Request, typename Response>
class RowStream {
 public:
  using Stream = grpc::ClientReaderWriterInterface<Request, Response>;

  // How the attempt ended: the error of `send` and of the call.
  struct Outcome {
    absl::Status sent;
    absl::Status status;
  };

  // All references outlive the stream. `take` gets each event and runs on the second thread;
  // WaitUntilAccepted returns when it has taken the first.
  RowStream(RowSource& source, absl::FunctionRef<void(Response)> take)
      : source_(source), take_(take) {}

  // Runs the stream that `open` opens: calls `send` on this thread, and cancels the call if `send`
  // fails.
  Outcome Run(grpc::ClientContext& context, RevisionMemory& revisions,
              const RevisionMemory::Asked& asked, CancelToken& cancel,
              absl::FunctionRef<std::unique_ptr<Stream>(grpc::ClientContext*)> open,
              absl::FunctionRef<absl::Status(RowStream&)> send) {
    stream_ = open(&context);
    const CancelToken::Registration registration = cancel.OnCancel([this, &context] {
      context.TryCancel();
      source_.Interrupt();
    });
    std::thread reader([this] { ReadEvents(); });
    Outcome outcome{.sent = send(*this)};
    if (!outcome.sent.ok()) context.TryCancel();
    reader.join();
    outcome.status = FromGrpc(stream_->Finish());
    revisions.Note(context, outcome.status, asked);
    return outcome;
  }

  // Returns false if the stream has ended; the outcome then has the reason.
  bool Write(const Request& request) { return stream_->Write(request); }
  void WritesDone() { stream_->WritesDone(); }

  // Blocks until the server accepts this attempt or ends it. Returns whether it accepted.
  bool WaitUntilAccepted() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return accepted_ || ended_; });
    return accepted_;
  }

  bool ended() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_;
  }

 private:
  void ReadEvents() {
    Response event;
    while (stream_->Read(&event)) {
      take_(std::move(event));
      Set(accepted_);
    }
    // Leaves an unused source uninterrupted. A source that cannot rewind would stay interrupted,
    // and the next attempt may need all its rows.
    if (Set(ended_)) source_.Interrupt();
  }

  // Returns whether the server has accepted the attempt.
  bool Set(bool& flag) {
    const std::lock_guard<std::mutex> lock(mutex_);
    flag = true;
    changed_.notify_all();
    return accepted_;
  }

  RowSource& source_;
  const absl::FunctionRef<void(Response)> take_;
  std::unique_ptr<Stream> stream_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool accepted_ = false;
  bool ended_ = false;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_ROW_STREAM_H_
