// One TransformStream. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_TRANSFORM_STREAM_CALL_H_
#define PHIMAP_CLIENT_CPP_TRANSFORM_STREAM_CALL_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::client {

// Requests go out from the caller's thread while a second thread reads answers and feeds the sink.
// The caller's thread waits while `window` requests are unanswered, so memory is bounded by the
// window even if the sink is slow.
//
// Used once, by one thread.
class TransformStreamCall {
 public:
  // REQUIRES: all references outlive the call; window >= 1; rows_per_request >= 0.
  TransformStreamCall(v1::TransformService::StubInterface& stub, std::string reference,
                      RowSource& source, const FeatureSink& sink,
                      const TransformStreamOptions& options, CancelToken& cancel);

  absl::StatusOr<TransformStreamResult> Run();

 private:
  using Stream =
      grpc::ClientReaderWriterInterface<v1::TransformStreamRequest, v1::TransformStreamResponse>;

  // Sends all rows; the error of the source, if any.
  absl::Status Send(Stream& stream);
  // Reads all answers. On an error of the sink or a wrong answer it cancels the call and reads on
  // to its end.
  absl::Status Receive(Stream& stream, grpc::ClientContext& context);
  absl::Status HandleAnswer(v1::TransformStreamResponse answer);
  // Waits for room in the window and returns how much the next request may have; 0 rows if the
  // stream is over.
  BlockLimits WaitForRoom();
  BlockLimits LimitsOfRequest() const;
  void End();

  v1::TransformService::StubInterface& stub_;
  const std::string reference_;
  RowSource& source_;
  const FeatureSink& sink_;
  const TransformStreamOptions options_;
  CancelToken& cancel_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  bool ended_ = false;
  std::deque<int32_t> unanswered_rows_;
  // Size of a row of features, 0 until the first answer.
  int64_t feature_row_bytes_ = 0;
  // The reader thread's until it has ended.
  TransformStreamResult result_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_TRANSFORM_STREAM_CALL_H_
