// One call that maps rows: a request in, features out. What its protocols have in common.
#ifndef PHIMAP_SERVER_RPC_TRANSFORM_UNARY_CALL_H_
#define PHIMAP_SERVER_RPC_TRANSFORM_UNARY_CALL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/rpc_scope.h"
#include "server/rpc/transform_path.h"

namespace phimap {

// Owns itself: deleted in OnDone. Request and response are gRPC's and live until then. A protocol
// derives from it and says how its messages are read and written; no step of it may wait.
class TransformUnaryCall : public grpc::ServerUnaryReactor {
 public:
  // Returns at once; the call ends on whichever thread has its answer.
  void Start();

  void OnCancel() final { scope_.Cancel(); }
  void OnDone() final { delete this; }
  // Both may run on any thread of gRPC's, and within Finish: they take no lock that a caller of
  // Finish holds, and wait for nothing. Otherwise gRPC hands each to a thread of another pool,
  // which costs a call about 8 µs of CPU on an idle machine and 30 on a busy one. gRPC means this
  // for reactors of its own; should it ever take the function away, this does not compile.
  bool InternalInlineable() final { return true; }

 protected:
  // What a request asks for. Its views point into the request, or into the call.
  struct Wanted {
    absl::string_view reference;
    RowsToMap rows;
  };

  // `environment` and `method` outlive the call.
  TransformUnaryCall(const TransformEnvironment& environment, const RpcMethod& method,
                     const grpc::CallbackServerContext& context);
  ~TransformUnaryCall() override = default;

  const RpcScope& scope() const { return scope_; }

 private:
  // In this order, each at most once.

  // What the request asks for, and whether it makes sense in itself.
  virtual absl::StatusOr<Wanted> Read() = 0;
  // An error about the reference, in the protocol's names for its fields.
  virtual absl::Status ReferenceError(const absl::Status& status) const { return status; }
  // Whether `version` suits the request, its columns included, and if so the answer, but for the
  // features.
  virtual absl::Status Accept(const VersionHandle& version, const ExamplesView& rows) = 0;
  // Room in the answer for the features; on the thread that computes them.
  virtual char* Allocate(const Engine& engine, int64_t rows) = 0;
  // The features are there: what else the answer takes from them and from the rows that the engine
  // saw. On the same thread, while the version is pinned.
  virtual void Complete(const ExamplesView& rows) { static_cast<void>(rows); }

  void Map(absl::StatusOr<VersionHandle> version);
  void End(const absl::Status& status);

  const TransformEnvironment& environment_;
  RpcScope scope_;
  RowsToMap rows_;
  AnswerBudget::Held answer_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSFORM_UNARY_CALL_H_
