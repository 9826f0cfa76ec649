#include "server/warm_start.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/thread/start_thread.h"

namespace phimap {

WarmStart::WarmStart(VersionRegistry& registry, std::chrono::seconds at_most, const Logger& logger,
                     std::function<void()> ready)
    : registry_(registry),
      logger_(logger),
      ready_(std::move(ready)),
      thread_(StartThread("warming", [this, started = std::chrono::steady_clock::now(), at_most] {
        Run(started, at_most);
      })) {}

WarmStart::~WarmStart() {
  registry_.StopWarming();
  thread_.join();
}

void WarmStart::Run(std::chrono::steady_clock::time_point started, std::chrono::seconds at_most) {
  using Warmth = VersionRegistry::Warmth;
  const Warmth warmth = registry_.AwaitWarm(started + at_most);
  if (warmth == Warmth::kStopped) return;
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - started;
  const std::string seconds = absl::StrCat(waited.count());
  if (warmth == Warmth::kWarm) {
    logger_.Log(LogLevel::kInfo, "aliases_warm", {{"seconds", seconds}});
  } else {
    logger_.Log(LogLevel::kWarning, "aliases_not_warm_in_time",
                {{"seconds", seconds}, {"versions_left", absl::StrCat(registry_.warming())}});
  }
  ready_();
}

}  // namespace phimap
