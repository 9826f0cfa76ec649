// One TransformStream call: receives requests and sends features, in order. Several requests may be
// in progress at once.
#ifndef PHIMAP_SERVER_TRANSFORM_TRANSFORM_STREAM_CALL_H_
#define PHIMAP_SERVER_TRANSFORM_TRANSFORM_STREAM_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/registry/version_handle.h"
#include "server/serving/row_stream_call.h"
#include "server/transform/transform_answer.h"

namespace phimap {

// The first request names the version for the whole stream. An error ends the stream.
class TransformStreamCall final
    : public RowStreamCall<v1::TransformStreamRequest, TransformAnswer> {
 public:
  TransformStreamCall(const CallStart& start, const RowCallEnvironment& environment,
                      const absl::Duration& idle_limit)
      : RowStreamCall(start, environment, idle_limit) {}

 private:
  absl::Status Read(Slot& slot) override;
  absl::string_view ReferenceOf(Slot& slot) override { return slot.request.reference(); }
  absl::Status Accept(Slot& slot) override;
  absl::Status Failed(Slot& slot, const absl::Status& status) override;

  VersionHandle version_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_TRANSFORM_STREAM_CALL_H_
