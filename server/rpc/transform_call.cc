#include "server/rpc/transform_call.h"

#include <utility>

#include "server/rpc/features_to_proto.h"
#include "server/rpc/rows_from_proto.h"
#include "server/rpc/version_ref_to_proto.h"

namespace phimap {

TransformCall::TransformCall(const Environment& environment, const MethodMetrics& method,
                             const grpc::CallbackServerContext& context,
                             const v1::TransformRequest& request, v1::TransformResponse* response)
    : environment_(environment),
      scope_(context, method, environment.logger),
      request_(request),
      response_(response) {
  scope_.MessageReceived();
}

// One line per step; what is longer belongs to the step. Nothing on an RPC thread waits: a version
// that is not live is loaded elsewhere, and the call goes on from there.
void TransformCall::Start() {
  absl::StatusOr<RowsView> rows = RowsFromProto(request_.examples());
  if (!rows.ok()) return End(rows.status());
  rows_ = *rows;
  environment_.registry.Acquire(
      request_.reference(),
      [this](absl::StatusOr<VersionHandle> version) { Compute(std::move(version)); });
}

void TransformCall::Compute(absl::StatusOr<VersionHandle> version) {
  if (!version.ok()) return End(version.status());
  if (absl::Status s = CheckDigest(*version, request_.expected_digest()); !s.ok()) return End(s);
  if (absl::Status s = CheckShape(*version, rows_, environment_.limits); !s.ok()) return End(s);
  absl::StatusOr<AnswerBudget::Reservation> answer =
      environment_.answers.Reserve(FeatureBytes(*version, rows_.rows));
  if (!answer.ok()) return End(answer.status());
  answer_ = *std::move(answer);  // until the answer is sent and the call deleted
  RefToProto(version->record(), response_->mutable_version());
  environment_.scheduler.Submit(MakeWork(*version, rows_, response_->mutable_features(), scope_,
                                         [this](const absl::Status& status) { End(status); }));
}

void TransformCall::End(const absl::Status& status) {
  if (status.ok()) scope_.MessageSent();
  Finish(scope_.Finish(status));  // `this` may be gone now
}

}  // namespace phimap
