#include "server/inference/inference_statistics.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/status_macros.h"
#include "server/inference/inference_model.h"
#include "server/observe/version_series.h"
#include "server/sync/steady_time.h"

namespace phimap {
namespace {

uint64_t Natural(int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(value, 0)); }

void Fill(const CountedTime& from, inference::StatisticDuration& to) {
  to.set_count(Natural(from.count));
  to.set_ns(Natural(absl::ToInt64Nanoseconds(from.total)));
}

CountedTime Counted(const TimeTally& tally) { return {tally.count(), tally.total()}; }

VersionCounts CountsOf(const VersionHandle& version) {
  const VersionTally& tally = version.tally();
  const absl::Time last = tally.last_request();
  return {.mapping = version.record().mapping,
          .number = version.record().number,
          .answered = Counted(tally.answered()),
          .failed = Counted(tally.failed()),
          .queued = Counted(tally.queued()),
          .computed = Counted(tally.computed()),
          .rows = tally.rows(),
          .batches = tally.batches(),
          // Converted to wall-clock time, because people read it.
          .last_request = last == absl::InfinitePast() ? last : absl::Now() - (SteadyNow() - last),
          .memory_bytes = version.memory_bytes()};
}

// Which versions a request is about: all, those of a mapping, or one.
struct Meant {
  std::string mapping;
  int64_t number = 0;

  bool Has(const VersionRecord& record) const {
    return (mapping.empty() || record.mapping == mapping) &&
           (number == 0 || record.number == number);
  }
};

absl::StatusOr<Meant> FindMeant(Store& store, const inference::ModelStatisticsRequest& request) {
  if (request.name().empty() && request.version().empty()) return Meant{};
  // Looks up a version even if the request is about a whole mapping: a mapping without versions is
  // an error.
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord found,
                          FindModel(store, request.name(), request.version()));
  return Meant{found.mapping, request.version().empty() ? 0 : found.number};
}

}  // namespace

inference::ModelStatistics ModelStatisticsOf(const VersionCounts& counts) {
  inference::ModelStatistics statistics;
  statistics.set_name(counts.mapping);
  statistics.set_version(absl::StrCat(counts.number));
  if (counts.last_request != absl::InfinitePast()) {
    statistics.set_last_inference(Natural(absl::ToUnixMillis(counts.last_request)));
  }
  statistics.set_inference_count(Natural(counts.rows));
  statistics.set_execution_count(Natural(counts.batches));
  inference::InferStatistics& requests = *statistics.mutable_inference_stats();
  Fill(counts.answered, *requests.mutable_success());
  Fill(counts.failed, *requests.mutable_fail());
  Fill(counts.queued, *requests.mutable_queue());
  Fill(counts.computed, *requests.mutable_compute_infer());
  // These counts must be set: clients divide by them without checking whether they are present.
  requests.mutable_compute_input()->set_count(Natural(counts.computed.count));
  requests.mutable_compute_output()->set_count(Natural(counts.computed.count));
  inference::MemoryUsage& memory = *statistics.add_memory_usage();
  memory.set_type("CPU");
  memory.set_byte_size(Natural(counts.memory_bytes));
  return statistics;
}

absl::Status ReadModelStatistics(Store& store, VersionRegistry& registry,
                                 const inference::ModelStatisticsRequest& request,
                                 inference::ModelStatisticsResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const Meant meant, FindMeant(store, request));
  for (const VersionHandle& version : registry.AllLive()) {
    if (!meant.Has(version.record())) continue;
    *response->add_model_stats() = ModelStatisticsOf(CountsOf(version));
  }
  return absl::OkStatus();
}

}  // namespace phimap
