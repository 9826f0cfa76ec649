// One call that maps rows: a request in, features or answers out. Shared by all protocols.
//
// A protocol derives from this class and implements how its messages are read and written. No step
// may block.
#ifndef PHIMAP_SERVER_TRANSFORM_ROW_CALL_H_
#define PHIMAP_SERVER_TRANSFORM_ROW_CALL_H_

#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/status/error.h"
#include "google/protobuf/empty.pb.h"
#include "server/registry/reference.h"
#include "server/registry/version_registry.h"
#include "server/rpc/call.h"
#include "server/transform/planned_answer.h"
#include "server/transform/row_server.h"

namespace phimap {

// Objects that the calls share. They must outlive the calls.
struct RowCallEnvironment {
  VersionRegistry& registry;
  RowServer& rows;
};

template <typename Request>
class RowCall : public TypedUnaryCall<Request, google::protobuf::Empty> {
 protected:
  // The contents of a request. The views point into the request or into the call.
  struct Wanted {
    absl::string_view reference;
    ExamplesView rows = RowsView{};
    // Path of the rows in the request, including a final dot.
    absl::string_view field;
    absl::Time deadline;
    // The part of the version that computes the answer.
    LivePart part = LivePart::kFeatures;
  };

  RowCall(const CallStart& start, const RowCallEnvironment& environment)
      : TypedUnaryCall<Request, google::protobuf::Empty>(start), environment_(environment) {}

 private:
  // The next functions are called in this order, each at most once.

  // Reads what the request asks for, and checks that it is consistent.
  virtual absl::StatusOr<Wanted> Read() = 0;
  // Returns an error about the reference with the protocol's names for the reference's fields.
  virtual absl::Status ReferenceError(const absl::Status& status) const { return status; }
  // Checks that `version` suits the request, including its columns, and if so plans answer().
  // Returns the bytes that a row takes in the answer, at most.
  virtual absl::StatusOr<int64_t> Accept(const VersionHandle& version,
                                         const ExamplesView& rows) = 0;
  virtual PlannedAnswer& answer() = 0;
  // Allocates the destination of what the engine computes: usually a field of the answer. Called on
  // the computing thread; may throw std::bad_alloc.
  virtual char* Allocate(const TransformMetrics& metrics) = 0;
  // Called when the engine is done. Completes the answer from what it computed and from the
  // engine's rows. Returns an error about the rows, whose field continues Wanted::field. Runs on
  // the computing thread, while the version is pinned; may throw std::bad_alloc.
  virtual absl::Status Complete(const ExamplesView& seen) = 0;

  void Start() final {
    absl::StatusOr<Wanted> wanted = Read();
    if (!wanted.ok()) return this->Finish(wanted.status());
    wanted_ = *std::move(wanted);
    const absl::Status allowed = CheckReference(*this, wanted_.reference);
    if (!allowed.ok()) return this->Finish(ReferenceError(allowed));
    environment_.registry.Acquire(
        wanted_.reference, wanted_.part, LoadPriority::kLast,
        [this, self = this->shared_from_this()](absl::StatusOr<VersionHandle> version) {
          if (this->OnLoop()) return Map(std::move(version));
          // If the version was not live, it was loaded on another thread.
          this->Post([this, version = std::move(version)]() mutable { Map(std::move(version)); });
        });
  }

  // Maps the rows with `version`, and finishes the call with the answer or an error.
  void Map(absl::StatusOr<VersionHandle> version) {
    if (!version.ok()) return this->Finish(ReferenceError(version.status()));
    if (absl::Status s = Plan(*version); !s.ok()) return this->Finish(s);
    RowRequest request;
    request.version = *std::move(version);
    request.rows = wanted_.rows;
    request.field = wanted_.field;
    request.deadline = wanted_.deadline;
    request.cancelled = this->cancelled();
    request.received = this->started();
    request.span = this->span();
    request.allocate = [this] { return Allocate(environment_.rows.metrics()); };
    request.done = [this, self = this->shared_from_this()](const absl::Status& status,
                                                           const ExamplesView& seen) {
      try {
        if (!status.ok()) return this->Finish(status);
        const absl::Status completed = Complete(seen);
        if (!completed.ok()) return this->Finish(WithFieldPrefix(completed, wanted_.field));
        this->Finish(answer().Release());
      } catch (const std::bad_alloc&) {
        this->CancelWithoutMemory();
      }
    };
    environment_.rows.Serve(std::move(request));
  }

  absl::Status Plan(const VersionHandle& version) {
    const absl::StatusOr<int64_t> row_bytes = Accept(version, wanted_.rows);
    if (!row_bytes.ok()) return row_bytes.status();
    const CallEnvironment& calls = this->environment();
    const absl::Status s =
        CheckAnswerFits(*row_bytes, wanted_.rows.rows(), calls.max_message_bytes);
    if (!s.ok()) return WithFieldPrefix(s, wanted_.field);
    if (const absl::Status spent = this->Spend(Rated::kRows, wanted_.rows.rows()); !spent.ok()) {
      return spent;
    }
    return answer().Charge(calls.memory, this->caller());
  }

  const RowCallEnvironment& environment_;
  Wanted wanted_{};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_ROW_CALL_H_
