// PredictService: see proto/phimap/v1/predict_service.proto.
#ifndef PHIMAP_SERVER_PREDICT_PREDICT_SERVICE_H_
#define PHIMAP_SERVER_PREDICT_PREDICT_SERVICE_H_

#include "absl/time/time.h"
#include "server/rpc/dispatcher.h"
#include "server/transform/row_call.h"

namespace phimap {

// Adds the service. `environment` and `idle_limit` must outlive the dispatcher. A PredictStream
// whose client is silent for `idle_limit` is ended.
void AddPredictService(const RowCallEnvironment& environment, const absl::Duration& idle_limit,
                       Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_PREDICT_PREDICT_SERVICE_H_
