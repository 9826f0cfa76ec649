// One request's rows on their way to the engine, until the answer is there.
#ifndef PHIMAP_SERVER_RPC_ROW_MAPPING_H_
#define PHIMAP_SERVER_RPC_ROW_MAPPING_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/examples.h"
#include "server/registry/version_handle.h"
#include "server/rpc/answer_budget.h"
#include "server/rpc/rpc_scope.h"
#include "server/rpc/transform_path.h"

namespace phimap {

// What the request asks for. Shared by those who work on it.
struct RowMapping {
  const TransformEnvironment& environment;
  VersionHandle version;
  RowsToMap wanted;
  const RpcScope& scope;
  AnswerBudget::Held& answer;
  // Of the answer.
  int64_t bytes = 0;
  std::function<char*()> allocate;
  MappedCallback done;
};

// Rows as the engine sees them: the request's own, or kernel values in their place.
struct EngineRows {
  ExamplesView rows;
  // Where they are in the request; outlives the work.
  absl::string_view field;
  // Whether ρ can be told.
  bool self_values = true;
  // Looks at their values, on the thread that computes.
  std::function<absl::Status()> check;
};

// Hands the rows to the scheduler; `mapping->done` is called once, here or on a worker.
void SubmitRows(const std::shared_ptr<RowMapping>& mapping, EngineRows rows);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_ROW_MAPPING_H_
