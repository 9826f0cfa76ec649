#include "server/observe/drift_metrics.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/observe/series.h"

namespace phimap {

std::array<DriftMetrics::Figure, DriftMetrics::kFigures> DriftMetrics::Families(
    prometheus::Registry& registry) {
  const auto family = [&registry](const char* name, const char* help) {
    return &prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  };
  return {
      {{family("phimap_drift_evidence_ratio",
               "Evidence that served rows differ from those that the version was built from, "
               "as ln R / ln c; the test alarms at 1."),
        &DriftFigures::evidence},
       {family("phimap_drift_crossed_timestamp_seconds",
               "Unix time at which phimap_drift_evidence_ratio last reached 1; absent if never."),
        &DriftFigures::crossed_seconds},
       {family("phimap_drift_shift_ratio",
               "Distance of the mean of F over served rows from its mean over held-out rows, "
               "less what chance explains, over the deviation of F."),
        &DriftFigures::shift},
       {family("phimap_drift_beyond_range_ratio",
               "Share of the numbers in served rows that are beyond the range of their column "
               "in the stream that the version was built from."),
        &DriftFigures::beyond},
       {family("phimap_drift_tested_rows",
               "Rows tested for drift since the alias points to its version."),
        &DriftFigures::rows},
       {family("phimap_drift_rows_not_finite",
               "Sampled rows with scores that are not finite, which are counted apart."),
        &DriftFigures::rows_not_finite}}};
}

DriftMetrics::DriftMetrics(prometheus::Registry& registry)
    : dropped(OneCounter(registry, "phimap_drift_rows_dropped_total",
                         "Rows sampled for the test for drift that were dropped because it could "
                         "not keep up.")),
      figures_(Families(registry)) {}

void DriftMetrics::Show(absl::string_view mapping, absl::string_view alias, int64_t version,
                        const DriftFigures& figures) {
  MutexLock lock(&mutex_);
  Shown& shown = shown_[Key(mapping, alias)];
  if (shown.version != version) {
    Remove(shown);
    shown.version = version;
    shown.gauges = {};
  }
  for (int i = 0; i < kFigures; ++i) {
    const double value = figures.*figures_[i].value;
    prometheus::Gauge*& gauge = shown.gauges[i];
    if (std::isnan(value)) {
      if (gauge != nullptr) figures_[i].family->Remove(gauge);
      gauge = nullptr;
      continue;
    }
    if (gauge == nullptr) {
      gauge = &figures_[i].family->Add({{"mapping", std::string(mapping)},
                                        {"alias", std::string(alias)},
                                        {"version", absl::StrCat(version)}});
    }
    gauge->Set(value);
  }
}

void DriftMetrics::Hide(absl::string_view mapping, absl::string_view alias) {
  MutexLock lock(&mutex_);
  const auto found = shown_.find(Key(mapping, alias));
  if (found == shown_.end()) return;
  Remove(found->second);
  shown_.erase(found);
}

void DriftMetrics::Remove(const Shown& shown) {
  for (int i = 0; i < kFigures; ++i) {
    if (shown.gauges[i] != nullptr) figures_[i].family->Remove(shown.gauges[i]);
  }
}

}  // namespace phimap
