// The series that have a caller's name as label.
//
// Names come from the operator's token file, but that may have thousands. At most kMaxNamed of them
// have series of their own, in the order in which they call; the others share one, "_other", a name
// that no caller can have. Callers without a name share "". Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_CALLER_SERIES_H_
#define PHIMAP_SERVER_OBSERVE_CALLER_SERIES_H_

#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/registry.h"

namespace phimap {

// What is counted of one caller. Lives as long as the registry.
struct CallerCounters {
  prometheus::Counter* calls;
  // Calls that were refused because of its rights or limits.
  prometheus::Counter* refused;
  prometheus::Counter* rows;
};

class CallerSeries {
 public:
  static constexpr size_t kMaxNamed = 100;

  explicit CallerSeries(prometheus::Registry& registry);

  // Returns the counters of the caller. Takes a lock, so callers keep the result.
  const CallerCounters& Of(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CallerCounters Add(const std::string& name);

  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Counter>& refused_;
  prometheus::Family<prometheus::Counter>& rows_;
  Mutex mutex_;
  std::map<std::string, CallerCounters, std::less<>> named_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_CALLER_SERIES_H_
