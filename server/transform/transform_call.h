// One Transform call: receives rows, sends features.
#ifndef PHIMAP_SERVER_TRANSFORM_TRANSFORM_CALL_H_
#define PHIMAP_SERVER_TRANSFORM_TRANSFORM_CALL_H_

#include "phimap/v1/transform_service.pb.h"
#include "server/serving/row_call.h"
#include "server/transform/transform_answer.h"

namespace phimap {

class TransformCall final : public RowCall<v1::TransformRequest> {
 public:
  TransformCall(const CallStart& start, const RowCallEnvironment& environment)
      : RowCall(start, environment) {}

 private:
  absl::StatusOr<Wanted> Read() override;
  absl::Status Accept(const VersionHandle& version, const ExamplesView& rows) override;
  PlannedAnswer& answer() override { return answer_.message(); }
  char* Features() override { return answer_.Features(); }
  void Complete(const ExamplesView& seen) override { answer_.Complete(seen); }

  TransformAnswer answer_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_TRANSFORM_CALL_H_
