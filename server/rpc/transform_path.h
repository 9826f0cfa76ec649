// The way of rows from a request that was read to the engine: what every call that maps rows has in
// common, whichever protocol it came by.
#ifndef PHIMAP_SERVER_RPC_TRANSFORM_PATH_H_
#define PHIMAP_SERVER_RPC_TRANSFORM_PATH_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/examples.h"
#include "server/observe/log.h"
#include "server/registry/version_handle.h"
#include "server/registry/version_registry.h"
#include "server/rpc/answer_budget.h"
#include "server/rpc/limits.h"
#include "server/rpc/rpc_scope.h"
#include "server/schedule/transform_scheduler.h"

namespace phimap {

// What such calls work with; outlives them.
struct TransformEnvironment {
  VersionRegistry& registry;
  TransformScheduler& scheduler;
  AnswerBudget& answers;
  const RpcLimits& limits;
  const Logger& logger;
};

// Rows that were checked against nothing but themselves (ExamplesFromProto), and where they came
// from.
struct RowsToMap {
  ExamplesView rows;
  // Where they are in the request, for errors, a last dot included: "examples.dense.".
  absl::string_view field;
  absl::Time deadline = absl::InfiniteFuture();
  // When they were read, for the metrics; InfinitePast: when the call began.
  absl::Time received = absl::InfinitePast();
  // What the answer holds of a row beside its features.
  int64_t extra_row_bytes = 0;
};

// How it ended, and the rows that the engine saw.
using MappedCallback = std::function<void(const absl::Status&, const ExamplesView& seen)>;

// Bytes of the features of `rows` rows.
int64_t FeatureBytes(const VersionHandle& version, int64_t rows);

// Whether ρ can be computed of the rows, as far as it depends on them: kernel values that come with
// the request may be without K(x, x).
bool HasSelfValues(const VersionHandle& version, const ExamplesView& rows);

// Makes features of `rows`: checks that they fit into a message and that the budget of answers has
// room for them, and hands the work to the scheduler; `answer` holds their bytes from then on that
// they are there. On the thread that computes, the values are checked and `allocate` returns where
// the features go: FeatureBytes, in the serving type, row after row. That is the one copy out. The
// version stays pinned until after `done`.
//
// Of a version whose kernel a service computes, the service is asked first, without a thread that
// waits (server/kernel/kernel_queue.h).
//
// `done` is called exactly once, here or on that thread, with the rows that the engine saw, for a
// residual: the request's own, or the kernel values in their place, readable until it returns.
// Errors: RESOURCE_EXHAUSTED (reason MESSAGE_TOO_LARGE, with the rows that would fit; ANSWERS_FULL;
// QUEUE_FULL), INVALID_ARGUMENT (CheckExamples), and those of the engine, the scheduler and the
// kernel queue.
// REQUIRES: the version takes them (CheckTakes); the rows' bytes, `scope` and `answer` live until
// `done`.
void MapRows(const TransformEnvironment& environment, const VersionHandle& version,
             const RowsToMap& rows, const RpcScope& scope, AnswerBudget::Held& answer,
             std::function<char*()> allocate, MappedCallback done);

// Whether MapRows refused for what others hold at the moment (QUEUE_FULL, ANSWERS_FULL), and gave
// `status` to `done` before it returned. The scheduler's room() tells when to try again.
bool IsLackOfRoom(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSFORM_PATH_H_
