// One Build call.
#ifndef PHIMAP_SERVER_MAPPING_BUILD_CALL_H_
#define PHIMAP_SERVER_MAPPING_BUILD_CALL_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/status/status_macros.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/mapping/building_call.h"
#include "server/transform/row_messages.h"

namespace phimap {

class BuildCall final : public BuildingCall<v1::BuildRequest, v1::BuildResponse> {
 public:
  // `builds` must outlive the call.
  BuildCall(const CallStart& start, BuildManager& builds) : BuildingCall(start, builds) {}

 private:
  absl::Status TakeSpec() override {
    const v1::BuildSpec& fields = request().spec();
    PHIMAP_ASSIGN_OR_RETURN(BuildId id,
                            BuildIdFromProto(fields.name(), fields.build_id(), "spec."));
    BuildOrder order;
    PHIMAP_ASSIGN_OR_RETURN(order.spec, BuildSpecFromProto(fields));
    if (fields.has_ttl()) {
      PHIMAP_ASSIGN_OR_RETURN(order.ttl, TtlFromProto(fields.ttl(), "spec.ttl"));
    }
    PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(CheckNewVersion(fields.name()), "spec."));
    order.caller = caller();
    order.principal = principal();
    order.origin = Origin();
    order.span = span();
    builds().Begin(std::move(id), std::move(order), Opens());
    return absl::OkStatus();
  }
  absl::StatusOr<TrainingBlock> ReadExamples(const BuildJob&) override {
    PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(request().examples()));
    return TrainingBlock{.rows = rows};
  }
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_BUILD_CALL_H_
