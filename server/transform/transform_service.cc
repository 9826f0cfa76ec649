#include "server/transform/transform_service.h"

#include "google/protobuf/descriptor.h"
#include "server/transform/transform_call.h"
#include "server/transform/transform_stream_call.h"

namespace phimap {

void AddTransformService(const RowCallEnvironment& environment, const absl::Duration& idle_limit,
                         Dispatcher& dispatcher) {
  const google::protobuf::FileDescriptor* const file = v1::TransformRequest::descriptor()->file();
  dispatcher.Add(*file->FindServiceByName("TransformService"),
                 {{"Transform", Opens<TransformCall>(environment)},
                  {"TransformStream", Opens<TransformStreamCall>(environment, idle_limit)}});
}

}  // namespace phimap
