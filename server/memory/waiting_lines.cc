#include "server/memory/waiting_lines.h"

#include <algorithm>
#include <utility>

#include "core/status/check.h"

namespace phimap {

struct WaitingLines::Line {
  const void* owner;
  std::list<std::shared_ptr<Place::Entry>> waiting = {};
};

struct WaitingLines::Place::Entry {
  Attempt attempt;
  Told told;
  // The line and the place in it, while the entry waits.
  bool waits = false;
  std::list<Line>::iterator line = {};
  std::list<std::shared_ptr<Entry>>::iterator where = {};
};

WaitingLines::WaitingLines() = default;

WaitingLines::~WaitingLines() { PHIMAP_CHECK(lines_.empty()); }

bool WaitingLines::TakeOrJoin(const void* owner, Attempt attempt, Told told, Place& place) {
  const auto entry = std::make_shared<Place::Entry>();
  entry->attempt = std::move(attempt);
  entry->told = std::move(told);
  {
    MutexLock lock(&mutex_);
    // Announced before the attempt: capacity that is freed after a failed attempt is then seen by
    // the thread that frees it.
    waited_for_.store(true);
    if (entry->attempt()) {
      waited_for_.store(!lines_.empty());
      return true;
    }
    entry->line = std::find_if(lines_.begin(), lines_.end(),
                               [owner](const Line& line) { return line.owner == owner; });
    if (entry->line == lines_.end()) entry->line = lines_.insert(lines_.end(), Line{owner});
    entry->where = entry->line->waiting.insert(entry->line->waiting.end(), entry);
    entry->waits = true;
  }
  place = Place(this, entry);
  return false;
}

void WaitingLines::Serve() {
  if (!waited_for_.load()) return;
  {
    MutexLock lock(&mutex_);
    freed_meanwhile_ = true;
    if (serving_) return;
    serving_ = true;
  }
  std::vector<Told> told;
  while (NextRound(told)) {
    for (const Told& tell : told) tell();
    told.clear();
  }
}

bool WaitingLines::NextRound(std::vector<Told>& told) {
  MutexLock lock(&mutex_);
  serving_ = std::exchange(freed_meanwhile_, false);
  if (!serving_) return false;
  while (ServeEach(told)) {
  }
  return true;
}

bool WaitingLines::ServeEach(std::vector<Told>& told) {
  bool any = false;
  const size_t count = lines_.size();
  auto line = lines_.begin();
  for (size_t i = 0; i < count; ++i) {
    const auto next = std::next(line);
    Place::Entry& first = *line->waiting.front();
    if (first.attempt()) {
      any = true;
      told.push_back(std::move(first.told));
      lines_.splice(lines_.end(), lines_, line);
      Drop(first);
    }
    line = next;
  }
  return any;
}

void WaitingLines::Leave(Place::Entry& entry) {
  Told told;
  MutexLock lock(&mutex_);
  if (!entry.waits) return;
  // Destroyed after the lock is released.
  told = std::move(entry.told);
  Drop(entry);
}

void WaitingLines::Drop(Place::Entry& entry) {
  entry.waits = false;
  const auto line = entry.line;
  line->waiting.erase(entry.where);
  if (line->waiting.empty()) lines_.erase(line);
  if (lines_.empty()) waited_for_.store(false);
}

}  // namespace phimap
