#include "server/evaluation/evaluation_service.h"

#include <utility>

#include "google/protobuf/descriptor.h"

namespace phimap {

EvaluationService::EvaluationService(Environment environment)
    : environment_{environment.registry,
                   environment.store,
                   environment.memory,
                   ingest_,
                   learning_,
                   running_,
                   environment.idle_timeout,
                   std::move(environment.yield)} {}

void EvaluationService::AddTo(Dispatcher& dispatcher) {
  dispatcher.Add(*v1::EvaluateRequest::descriptor()->file()->FindServiceByName("EvaluationService"),
                 {{"Evaluate", Opens<EvaluateCall>(environment_)}});
}

}  // namespace phimap
