#include "server/registry/catalog_view.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr size_t kPassedRevisions = 4096;

}  // namespace

CatalogView::Known CatalogView::Index(MappingNames names) {
  Known known{std::move(names), {}};
  known.by_digest.resize(known.names.digests.size());
  std::iota(known.by_digest.begin(), known.by_digest.end(), size_t{0});
  std::sort(known.by_digest.begin(), known.by_digest.end(), [&](size_t a, size_t b) {
    const int order = known.names.digests[a].compare(known.names.digests[b]);
    return order != 0 ? order < 0 : a > b;
  });
  return known;
}

int64_t CatalogView::VersionOfDigest(const Known& known, absl::string_view digest) {
  const MappingNames& names = known.names;
  const auto first = std::lower_bound(
      known.by_digest.begin(), known.by_digest.end(), digest,
      [&](size_t i, absl::string_view wanted) { return names.digests[i] < wanted; });
  if (first == known.by_digest.end() || !absl::StartsWith(names.digests[*first], digest)) return 0;
  // Other digests with this prefix come next in the order. Versions with equal digests are
  // interchangeable, so they do not make the prefix ambiguous.
  auto next = first;
  while (next != known.by_digest.end() && names.digests[*next] == names.digests[*first]) ++next;
  const bool ambiguous =
      next != known.by_digest.end() && absl::StartsWith(names.digests[*next], digest);
  return ambiguous ? 0 : names.versions[*first];
}

int64_t CatalogView::VersionOf(const Known& known, const Reference& reference) {
  const MappingNames& names = known.names;
  if (!reference.digest.empty()) return VersionOfDigest(known, reference.digest);
  if (reference.number.has_value()) {
    const bool there =
        std::binary_search(names.versions.begin(), names.versions.end(), *reference.number);
    return there ? *reference.number : 0;
  }
  if (reference.alias.empty()) return names.newest_version();
  const auto alias = std::lower_bound(
      names.aliases.begin(), names.aliases.end(), reference.alias,
      [](const AliasTarget& target, absl::string_view name) { return target.alias < name; });
  return alias != names.aliases.end() && alias->alias == reference.alias ? alias->version : 0;
}

int64_t CatalogView::Find(const Reference& reference) const {
  MutexLock lock(&mutex_);
  const auto mapping = names_.find(reference.mapping);
  return mapping == names_.end() ? 0 : VersionOf(mapping->second, reference);
}

std::vector<std::string> CatalogView::AliasesOf(absl::string_view mapping, int64_t number) const {
  std::vector<std::string> aliases;
  MutexLock lock(&mutex_);
  const auto names = names_.find(mapping);
  if (names == names_.end()) return aliases;
  for (const AliasTarget& target : names->second.names.aliases) {
    if (target.version == number) aliases.push_back(target.alias);
  }
  return aliases;
}

Revision CatalogView::revision() const {
  MutexLock lock(&mutex_);
  return revision_;
}

void CatalogView::CopyTo(Revision& revision, std::vector<MappingNames>& mappings) const {
  MutexLock lock(&mutex_);
  revision = revision_;
  for (const auto& [mapping, known] : names_) mappings.push_back(known.names);
}

CatalogView::Place CatalogView::place() const {
  MutexLock lock(&mutex_);
  return {revision_, history_};
}

std::string CatalogView::IdOfPassed(int64_t number) const {
  MutexLock lock(&mutex_);
  const auto found = std::lower_bound(
      passed_.begin(), passed_.end(), number,
      [](const Revision& revision, int64_t wanted) { return revision.number < wanted; });
  return found != passed_.end() && found->number == number ? found->id : "";
}

int64_t CatalogView::breaks() const {
  MutexLock lock(&mutex_);
  return history_;
}

void CatalogView::AddGone(NameChanges& changes) const {
  absl::flat_hash_set<absl::string_view> living;
  for (const MappingNames& names : changes.mappings) living.insert(names.mapping);
  std::vector<MappingNames> gone;
  {
    MutexLock lock(&mutex_);
    for (const auto& [mapping, names] : names_) {
      if (!living.contains(mapping)) gone.push_back({.mapping = mapping});
    }
  }
  changes.mappings.insert(changes.mappings.end(), gone.begin(), gone.end());
}

std::vector<MappingNames> CatalogView::MoveTo(const NameChanges& changes, std::vector<Known> now) {
  std::vector<MappingNames> before;
  before.reserve(now.size());
  MutexLock lock(&mutex_);
  for (Known& known : now) {
    const std::string mapping = known.names.mapping;
    const auto found = names_.find(mapping);
    before.push_back({.mapping = mapping});
    if (found != names_.end()) before.back() = std::move(found->second.names);
    if (!known.names.versions.empty()) {
      names_[mapping] = std::move(known);
    } else if (found != names_.end()) {
      names_.erase(found);
    }
  }
  if (changes.whole) {
    passed_.clear();
    // The first answer breaks no history.
    if (!revision_.id.empty()) ++history_;
  }
  passed_.insert(passed_.end(), changes.passed.begin(), changes.passed.end());
  while (passed_.size() > kPassedRevisions) passed_.pop_front();
  revision_ = changes.revision;
  return before;
}

absl::Status CatalogView::CatchUp(Source source) {
  while (true) {
    const Place since = place();
    PHIMAP_ASSIGN_OR_RETURN(NameChanges changes, source(since.revision));
    if (Apply(since, std::move(changes))) return absl::OkStatus();
  }
}

bool CatalogView::Apply(const Place& since, NameChanges changes) {
  MutexLock lock(&applying_);
  const Place seen = place();
  if (seen.history != since.history) return false;
  // The catalog has no longer the history of `since`. If the view has moved on, ask about where it
  // is: its answer may come from the new history already.
  if (changes.whole && seen.revision != since.revision) return false;
  // Another caller has already applied a later answer, which includes these changes.
  if (!changes.whole && changes.revision.number <= seen.revision.number) return true;
  // Revisions that another caller's answer has added already.
  std::erase_if(changes.passed, [&](const Revision& passed) {
    return !changes.whole && passed.number <= seen.revision.number;
  });
  if (changes.whole) AddGone(changes);
  std::vector<Known> now;
  now.reserve(changes.mappings.size());
  for (const MappingNames& names : changes.mappings) now.push_back(Index(names));
  const std::vector<MappingNames> before = MoveTo(changes, std::move(now));
  for (size_t i = 0; changed_ && i < before.size(); ++i) changed_(before[i], changes.mappings[i]);
  return true;
}

}  // namespace phimap
