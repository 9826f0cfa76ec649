// One TransformStream with its retries. Includes gRPC: for .cc files only.
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

// Implements Client::TransformStream with three threads. The caller's thread reads the source and
// puts requests into a window. It waits while `window` requests are unanswered, so memory is
// bounded even if the sink is slow. A second thread runs one stream after another until all
// requests are answered: it reads the answers and feeds the sink. A third thread, one for each
// stream, sends the requests of the window.
//
// A request stays in the window until it is answered. If a stream breaks, the next stream begins
// with the first unanswered request. It asks for the version that answered before, by number and
// digest. This is always safe, because a transform changes nothing. A refusal with a retry delay is
// treated like a broken stream. Each answer resets the count of attempts. A retry does not
// interrupt the source, which may be a pipe.
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
  // End of one stream.
  struct Outcome {
    absl::Status status;
    // Whether the error is from the sink or the client itself, so that another attempt cannot help.
    bool final = false;
  };

  // Runs on the caller's thread. Fills the window until the source ends; returns its error, if any.
  absl::Status ReadSource();
  // Waits for capacity in the window and returns the limits of the next request; 0 rows if no more
  // are wanted.
  BlockLimits WaitForCapacity();
  BlockLimits LimitsOfRequest() const;

  // Runs on the second thread. Opens streams until all rows are answered or retries cannot help.
  absl::Status RunStreams();
  // Waits for a request to send. False if none is left.
  bool WaitForRequest();
  Outcome RunStream();
  // If the pinned number was refused with this error, switches to the digest.
  bool LookElsewhere(const absl::Status& error);
  // Waits until another stream may be opened. False if none may.
  bool WaitToRetry(const Outcome& outcome);
  // Reads all answers. After an error of the sink or a wrong answer, cancels the stream and drains
  // it.
  absl::Status Receive(Stream& stream, grpc::ClientContext& context);
  absl::Status HandleAnswer(v1::TransformStreamResponse answer);

  // Runs on the third thread. Sends the requests of the window, also those added later, until the
  // stream ends.
  void Send(Stream& stream);
  // The next request of this stream; null if there is none left.
  std::shared_ptr<const v1::TransformStreamRequest> NextToSend();

  // Ends the open stream; no further stream is opened.
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
  // Size of a row of features, 0 until the first answer.
  int64_t feature_row_bytes_ = 0;
  // Number of streams since the last answer. Used only by the second thread; so is result_ until
  // that thread has ended.
  int attempt_ = 1;
  // Number of refusals because of a revision of another history, since the last answer.
  int refused_ = 0;
  TransformStreamResult result_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_TRANSFORM_STREAM_CALL_H_
