#include "server/observe/build_metrics.h"

#include <string>

#include "prometheus/family.h"
#include "server/observe/latency_buckets.h"
#include "server/observe/single_series.h"

namespace phimap {
namespace {

// Labels of the states, in the order of BuildState.
constexpr const char* kStateLabels[kBuildStates] = {
    "receiving", "queued", "computing", "publishing", "done", "failed", "cancelled"};
// Labels of the phases, in the order in which a build goes through them.
constexpr absl::string_view kPhaseLabels[kBuildPhases] = {
    "receive", "queue", "sample",      "choose", "kernel", "gram",
    "factor",  "draw",  "certificate", "encode", "publish"};

std::array<prometheus::Gauge*, kBuildStates> StateGauges(prometheus::Registry& registry) {
  auto& family = prometheus::BuildGauge()
                     .Name("phimap_builds")
                     .Help("Builds known to the server, by state.")
                     .Register(registry);
  std::array<prometheus::Gauge*, kBuildStates> gauges{};
  for (int i = 0; i < kBuildStates; ++i) gauges[i] = &family.Add({{"state", kStateLabels[i]}});
  return gauges;
}

std::array<prometheus::Counter*, kStatusCodes> EndCounters(prometheus::Registry& registry) {
  auto& family = prometheus::BuildCounter()
                     .Name("phimap_builds_ended_total")
                     .Help("Builds that ended, by their code.")
                     .Register(registry);
  std::array<prometheus::Counter*, kStatusCodes> counters{};
  for (int i = 0; i < kStatusCodes; ++i) {
    counters[i] = &family.Add({{"code", std::string(CodeLabel(static_cast<absl::StatusCode>(i)))}});
  }
  return counters;
}

std::array<prometheus::Histogram*, kBuildPhases> PhaseHistograms(prometheus::Registry& registry) {
  auto& family = prometheus::BuildHistogram()
                     .Name("phimap_build_phase_seconds")
                     .Help("Duration of completed phases of builds, in seconds.")
                     .Register(registry);
  std::array<prometheus::Histogram*, kBuildPhases> histograms{};
  for (int i = 0; i < kBuildPhases; ++i) {
    histograms[i] = &family.Add({{"phase", std::string(kPhaseLabels[i])}}, LongLatencyBuckets());
  }
  return histograms;
}

}  // namespace

BuildMetrics::BuildMetrics(prometheus::Registry& registry)
    : in_state(StateGauges(registry)),
      ended(EndCounters(registry)),
      rows(OneCounter(registry, "phimap_build_rows_total", "Rows taken into builds.")),
      seconds(OneHistogram(registry, "phimap_build_seconds",
                           "Seconds from the start of computing to the stored version.",
                           LongLatencyBuckets())),
      memory_bytes(OneGauge(registry, "phimap_build_memory_bytes",
                            "Memory reserved for unfinished builds.")),
      phase_seconds_(PhaseHistograms(registry)) {}

prometheus::Histogram* BuildMetrics::PhaseSeconds(absl::string_view phase) const {
  for (int i = 0; i < kBuildPhases; ++i) {
    if (kPhaseLabels[i] == phase) return phase_seconds_[i];
  }
  return nullptr;
}

void BuildMetrics::PhaseEnded(absl::string_view phase, double phase_seconds) const {
  if (prometheus::Histogram* const histogram = PhaseSeconds(phase)) {
    histogram->Observe(phase_seconds);
  }
}

}  // namespace phimap
