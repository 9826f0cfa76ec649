#include "core/mapping/build/mapping_build.h"

#include "core/linalg/tiles.h"

namespace phimap {

absl::StatusOr<BuiltMapping> BuildMapping(const BuildSpec& spec, const LandmarkTask& task,
                                          BuildProgress& progress) {
  const Mapping& mapping = *spec.mapping.kind;
  const bool factors = mapping.gram_share != nullptr;
  const double gram = factors ? mapping.gram_share(spec, task) : 0;
  const auto threads = [&] { return progress.threads(); };
  const auto checkpoint = [&](double f) {
    return progress.Report(BuildStep::kMapping,
                           !factors   ? "draw"
                           : f < gram ? "gram"
                                      : "factor",
                           f);
  };
  return mapping.build(spec, task, {threads, checkpoint});
}

}  // namespace phimap
