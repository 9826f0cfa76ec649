// One Build with its retries. Includes gRPC: for .cc files only.
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

// The options as the API has them.
void ToSpec(const BuildOptions& options, v1::BuildSpec& spec);

// Rows are sent from the caller's thread while a second thread reads events. An error of the server
// is thus noticed while rows are being sent: it ends the stream, which makes a blocked Write fail,
// and interrupts the source.
//
// Each attempt sends the spec and waits for `accepted`, so that a server that refuses the build
// costs no row of an input that can be read only once. If the server reports `attached`, it has the
// build with all its rows, and the call follows it. Otherwise the call sends all rows, after a
// rewind if an earlier attempt took some, or gives up.
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

  // End of one attempt.
  struct Outcome {
    absl::Status status;
    // The error is the input's or the client's own, so another attempt cannot help.
    bool final = false;
  };

  Outcome RunAttempt();
  // Sends the rows and the finish, unless the server needs no more.
  absl::Status Send(Stream& stream);
  absl::Status SendRows(Stream& stream);
  void ReadEvents(Stream& stream);
  void HandleEvent(v1::BuildResponse event);
  // Waits until the server accepted this attempt or ended it; true if it accepted.
  bool WaitUntilAccepted();
  // Whether the server wants no more rows: the stream is over, or follows a build that has all
  // rows.
  bool WantsNoRows();
  // Time to wait before the next attempt; nullopt if there is none.
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
  // State of this attempt; under mutex_.
  bool accepted_ = false;
  bool attached_ = false;
  bool ended_ = false;
  // State of the whole call; under mutex_.
  bool ever_accepted_ = false;
  bool ever_sent_ = false;
  // Rows may have been taken from the source, or it was interrupted. This member and the following
  // ones belong to the caller's thread.
  bool source_used_ = false;
  BuildProgress progress_;
  std::optional<v1::Version> version_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_BUILD_CALL_H_
