// One call that maps rows: a request in, features out. Shared by all protocols.
//
// A protocol derives from it and implements the reading and writing of its messages; no step may
// wait.
#ifndef PHIMAP_SERVER_SERVING_ROW_CALL_H_
#define PHIMAP_SERVER_SERVING_ROW_CALL_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/status/error.h"
#include "google/protobuf/empty.pb.h"
#include "server/calls/unary_call.h"
#include "server/registry/version_registry.h"
#include "server/serving/planned_answer.h"
#include "server/serving/row_server.h"

namespace phimap {

// Services that such calls use; outlives them.
struct RowCallEnvironment {
  VersionRegistry& registry;
  RowServer& rows;
};

template <typename Request>
class RowCall : public TypedUnaryCall<Request, google::protobuf::Empty> {
 protected:
  // The request's wishes. The views point into the request, or into the call.
  struct Wanted {
    absl::string_view reference;
    ExamplesView rows = RowsView{};
    // Path of the rows in the request; includes a last dot.
    absl::string_view field;
    absl::Time deadline;
    // Bytes per row in the answer beside its features.
    int64_t extra_row_bytes = 0;
  };

  RowCall(const CallStart& start, const RowCallEnvironment& environment)
      : TypedUnaryCall<Request, google::protobuf::Empty>(start), environment_(environment) {}

 private:
  // In this order, each at most once.

  // Reads the request's wishes and checks that they are consistent.
  virtual absl::StatusOr<Wanted> Read() = 0;
  // An error about the reference, in the protocol's names for its fields.
  virtual absl::Status ReferenceError(const absl::Status& status) const { return status; }
  // Whether `version` suits the request, its columns included, and if so lays out answer().
  virtual absl::Status Accept(const VersionHandle& version, const ExamplesView& rows) = 0;
  virtual PlannedAnswer& answer() = 0;
  // Destination of the features: usually a field of the answer, which has been allocated. On the
  // thread that computes; may throw std::bad_alloc.
  virtual char* Features() = 0;
  // The features are computed: completes the answer from them and from the engine's rows. On the
  // thread that computed them, while the version is pinned.
  virtual void Complete(const ExamplesView& seen) { static_cast<void>(seen); }

  void Start() final {
    absl::StatusOr<Wanted> wanted = Read();
    if (!wanted.ok()) return this->Finish(wanted.status());
    wanted_ = *std::move(wanted);
    environment_.registry.Acquire(wanted_.reference, [this, self = this->shared_from_this()](
                                                         absl::StatusOr<VersionHandle> version) {
      if (this->OnLoop()) return Map(std::move(version));
      // A version that was not live was loaded elsewhere.
      this->Post([this, version = std::move(version)]() mutable { Map(std::move(version)); });
    });
  }

  // One line per step; longer parts belong to the step.
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
    request.allocate = [this] {
      answer().Allocate(environment_.rows.metrics());
      return Features();
    };
    request.done = [this, self = this->shared_from_this()](const absl::Status& status,
                                                           const ExamplesView& seen) {
      if (!status.ok()) return this->Finish(status);
      Complete(seen);
      this->FinishWith(answer().Release());
    };
    environment_.rows.Serve(std::move(request));
  }

  absl::Status Plan(const VersionHandle& version) {
    absl::Status s = Accept(version, wanted_.rows);
    if (!s.ok()) return s;
    const CallEnvironment& calls = this->environment();
    s = CheckAnswerFits(version, wanted_.rows.rows(), wanted_.extra_row_bytes,
                        calls.max_message_bytes);
    if (!s.ok()) return WithFieldPrefix(s, wanted_.field);
    return answer().Charge(calls.memory);
  }

  const RowCallEnvironment& environment_;
  Wanted wanted_{};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVING_ROW_CALL_H_
