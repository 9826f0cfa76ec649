#include "server/config_reload.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"
#include "server/memory_warnings.h"

namespace phimap {
namespace {

std::string ValueForLog(const Setting& setting) {
  return setting.values.empty() ? "not set" : absl::StrJoin(setting.values, ",");
}

}  // namespace

void ConfigReload::Run() {
  if (in_force_.file.empty()) {
    return logger_.Log(LogLevel::kInfo, "config_not_read", {{"reason", "there is no --config"}});
  }
  const absl::StatusOr<Configuration> now = read_();
  if (now.ok()) return Apply(*now);
  server_.CountReloadFailure();
  const absl::string_view error = now.status().message();
  logger_.Log(LogLevel::kError, "config_wrong",
              {{"error", std::string(error.substr(0, error.find('\n')))},
               {"effect", "the settings read before stay in force"}});
}

void ConfigReload::Apply(const Configuration& now) {
  server_.Follow(now.options);
  // The lines below are of the more talkative of the two levels, or a change to or from "error"
  // would not be seen.
  logger_.SetLevel(std::min(logger_.level(), now.options.log_level));
  int changed = 0;
  int waiting = 0;
  for (size_t i = 0; i < in_force_.settings.size(); ++i) {
    Setting& before = in_force_.settings[i];
    const Setting& next = now.settings[i];
    PHIMAP_CHECK(before.name == next.name);
    if (before.values == next.values) continue;
    LogChange(before, next);
    ++(next.follows_sighup ? changed : waiting);
    if (next.follows_sighup) before = next;
  }
  if (changed > 0) WarnOfMemory(logger_, now.options);
  logger_.Log(LogLevel::kInfo, "config_read",
              {{"file", now.file}, {"changed", changed}, {"needs_restart", waiting}});
  logger_.SetCallSampling(now.options.log_calls_one_in);
  logger_.SetLevel(now.options.log_level);
}

void ConfigReload::LogChange(const Setting& before, const Setting& now) const {
  const std::string was = ValueForLog(before);
  const std::string is = ValueForLog(now);
  const std::string place = now.place.empty() ? "default" : now.place;
  if (now.follows_sighup) {
    logger_.Log(LogLevel::kInfo, "setting_changed",
                {{"setting", now.name}, {"from", was}, {"to", is}, {"place", place}});
  } else {
    logger_.Log(LogLevel::kWarning, "setting_needs_restart",
                {{"setting", now.name}, {"in_force", was}, {"then", is}, {"place", place}});
  }
}

}  // namespace phimap
