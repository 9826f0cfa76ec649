#include "server/rpc/transform_unary_call.h"

#include <utility>

namespace phimap {

TransformUnaryCall::TransformUnaryCall(const TransformEnvironment& environment,
                                       const RpcMethod& method,
                                       const grpc::CallbackServerContext& context)
    : environment_(environment), scope_(context, method, environment.logger) {
  scope_.MessageReceived();
}

// One line per step; what is longer belongs to the step. Nothing on an RPC thread waits: a version
// that is not live is loaded elsewhere, and the call goes on from there.
void TransformUnaryCall::Start() {
  if (!scope_.admission().ok()) return End(scope_.admission());
  const absl::StatusOr<Wanted> wanted = Read();
  if (!wanted.ok()) return End(wanted.status());
  rows_ = wanted->rows;
  environment_.registry.Acquire(wanted->reference, [this](absl::StatusOr<VersionHandle> version) {
    Map(std::move(version));
  });
}

void TransformUnaryCall::Map(absl::StatusOr<VersionHandle> version) {
  if (!version.ok()) return End(ReferenceError(version.status()));
  if (absl::Status s = Accept(*version, rows_.rows); !s.ok()) return End(s);
  // The work pins the version, and no longer than it needs it: not until a slow client has read.
  MapRows(
      environment_, *version, rows_, scope_, answer_,
      [this, engine = &version->engine()] { return Allocate(*engine, rows_.rows.rows()); },
      [this](const absl::Status& status, const ExamplesView& seen) {
        if (status.ok()) Complete(seen);
        End(status);
      });
}

void TransformUnaryCall::End(const absl::Status& status) {
  if (status.ok()) scope_.MessageSent();
  Finish(scope_.Finish(status));  // `this` may be gone now
}

}  // namespace phimap
