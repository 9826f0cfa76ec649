// A Build call with its retries. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_BUILD_CALL_H_
#define PHIMAP_CLIENT_CPP_BUILD_CALL_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/cpp/revision_memory.h"
#include "google/protobuf/duration.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"

namespace phimap::client {

// REQUIRES: `duration` is finite.
void ToProto(absl::Duration duration, google::protobuf::Duration& out);

// Fills `spec` from `options`.
void ToSpec(const BuildOptions& options, v1::BuildSpec& spec);

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
            const BuildObserver& observer, CancelToken& cancel);

  absl::StatusOr<v1::Version> Run();

 private:
  using Stream = grpc::ClientReaderWriterInterface<v1::BuildRequest, v1::BuildResponse>;

  // How one attempt ended.
  struct Outcome {
    absl::Status status;
    // True if another attempt cannot help: the input failed, or the server sent no version.
    bool final = false;
  };

  Outcome RunAttempt();
  // Sends the spec, then the rows and `finish` unless the server does not need them.
  absl::Status Send(Stream& stream);
  absl::Status SendRows(Stream& stream);
  void ReadEvents(Stream& stream);
  void HandleEvent(v1::BuildResponse event);
  // Blocks until the server accepts this attempt or ends it. Returns true if the server accepted.
  bool WaitUntilAccepted();
  // Returns true if the server needs no more rows: the stream has ended, or this attempt is
  // attached to a build that has all rows.
  bool WantsNoRows();
  // Returns the wait before the next attempt; nullopt if there must be no further attempt.
  std::optional<absl::Duration> WaitAfter(const Outcome& outcome, int attempt);
  void Report();

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

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_BUILD_CALL_H_
