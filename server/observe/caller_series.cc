#include "server/observe/caller_series.h"

namespace phimap {
namespace {

constexpr char kOther[] = "_other";

}  // namespace

CallerSeries::CallerSeries(prometheus::Registry& registry)
    : calls_(prometheus::BuildCounter()
                 .Name("phimap_caller_calls_total")
                 .Help("Calls that ended, by the caller's name in the token file; \"_other\" "
                       "beyond 100 names.")
                 .Register(registry)),
      refused_(prometheus::BuildCounter()
                   .Name("phimap_caller_refused_total")
                   .Help("Calls refused because of the caller's rights or limits, by its name.")
                   .Register(registry)),
      rows_(prometheus::BuildCounter()
                .Name("phimap_caller_rows_total")
                .Help("Rows that callers had mapped, by the caller's name.")
                .Register(registry)) {}

const CallerCounters& CallerSeries::Of(absl::string_view name) {
  MutexLock lock(&mutex_);
  if (const auto found = named_.find(name); found != named_.end()) return found->second;
  // "_other" is one more.
  const std::string label(named_.size() < kMaxNamed || name == kOther ? name : kOther);
  const auto [place, added] = named_.try_emplace(label);
  if (added) place->second = Add(label);
  return place->second;
}

CallerCounters CallerSeries::Add(const std::string& name) {
  const prometheus::Labels labels = {{"caller", name}};
  return {&calls_.Add(labels), &refused_.Add(labels), &rows_.Add(labels)};
}

}  // namespace phimap
