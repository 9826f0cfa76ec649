// A TransformStream call with its retries. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_TRANSFORM_STREAM_CALL_H_
#define PHIMAP_CLIENT_CPP_TRANSFORM_STREAM_CALL_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/cpp/revision_memory.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::client {

// Implements Client::TransformStream. The caller's thread reads the source and puts requests into a
// window. A second thread opens one stream after the other until all requests are answered; it
// reads the answers and calls the sink. A third thread, one per stream, sends the requests of the
// window. The caller's thread blocks while `window` requests are unanswered, so the window bounds
// memory even if the sink is slow.
//
// A request stays in the window until it is answered. A stream that breaks is reopened and starts
// with the first unanswered request, on the version that answered before, by its number and digest.
// This is always safe, since a transform changes nothing. A refusal with a retry delay is handled
// the same way. Each answer resets the count of attempts. A retry does not interrupt the source, so
// the source may be a pipe.
//
// Used once, by one thread.
class TransformStreamCall {
 public:
  // REQUIRES: all references outlive the call; window >= 1; rows_per_request >= 0.
  TransformStreamCall(v1::TransformService::StubInterface& stub, RevisionMemory& revisions,
                      const RetryPolicy& retry, std::string reference, RowSource& source,
                      const FeatureSink& sink, const TransformStreamOptions& options,
                      CancelToken& cancel);

  absl::StatusOr<TransformStreamResult> Run();

 private:
  using Stream =
      grpc::ClientReaderWriterInterface<v1::TransformStreamRequest, v1::TransformStreamResponse>;

  struct Request {
    int32_t rows;
    std::shared_ptr<v1::TransformStreamRequest> message;
  };
  // How one stream ended.
  struct Outcome {
    absl::Status status;
    // True if another attempt cannot help: the sink failed, the server's answers are wrong, or the
    // call was abandoned.
    bool final = false;
  };

  // Runs on the caller's thread. Fills the window until the source ends. Returns the source's
  // error, if any.
  absl::Status ReadSource();
  // Blocks until the window has capacity. Returns the limits of the next request, with 0 rows if no
  // more rows are wanted.
  BlockLimits WaitForRoom();
  BlockLimits LimitsOfRequest() const;

  // Runs on the second thread. Opens streams until all rows are answered or another attempt cannot
  // help.
  absl::Status RunStreams();
  // Blocks until the window has a request. Returns false if there is nothing left to send.
  bool WaitForRequest();
  Outcome RunStream();
  // If `error` means that the version's number is gone or has another digest, replaces the number
  // in reference_ by the digest and returns true.
  bool LookElsewhere(const absl::Status& error);
  // Waits for the time of the next attempt. Returns false if another attempt cannot help, is not
  // allowed, or the call was abandoned.
  bool WaitToRetry(const Outcome& outcome);
  // Reads all answers. On an error of the sink or a wrong answer, cancels the stream and reads it
  // to its end.
  absl::Status Receive(Stream& stream, grpc::ClientContext& context);
  absl::Status HandleAnswer(v1::TransformStreamResponse answer);

  // Runs on the third thread. Sends the requests of the window, also those added later, until the
  // stream ends.
  void Send(Stream& stream);
  // Blocks until this stream has a request to send, and returns it; null if there is none left.
  std::shared_ptr<const v1::TransformStreamRequest> NextToSend();

  // Cancels the open stream and prevents further ones.
  void Abandon();

  v1::TransformService::StubInterface& stub_;
  RevisionMemory& revisions_;
  const RetryPolicy retry_;
  RowSource& source_;
  const FeatureSink& sink_;
  const TransformStreamOptions options_;
  CancelToken& cancel_;
  const absl::Time deadline_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  bool source_ended_ = false;
  bool stream_ended_ = false;
  bool abandoned_ = false;
  // True once RunStreams has returned: no further stream will be opened.
  bool over_ = false;
  // Unanswered requests, in order; the first sent_ of them were sent on the open stream.
  std::deque<Request> window_;
  size_t sent_ = 0;
  bool first_of_stream_ = true;
  // Reference for the next stream. Once a version has answered, it names that version.
  std::string reference_;
  std::string digest_;
  // 0 if the columns have no names.
  const uint64_t column_names_hash_;
  // Context of the open stream; null if none is open.
  grpc::ClientContext* context_ = nullptr;
  // Bytes of one row of features; 0 until the first answer.
  int64_t feature_row_bytes_ = 0;
  // Number of the current attempt, counted from 1 after each answer. This and the following members
  // are used only by the second thread until it has ended.
  int attempt_ = 1;
  // Whether a revision of another history was forgotten since the last answer. A call without a
  // revision cannot be refused for the same reason again.
  bool forgot_ = false;
  TransformStreamResult result_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_TRANSFORM_STREAM_CALL_H_
