#include "server/registry/known_names.h"

#include <algorithm>

namespace phimap {

int64_t KnownNames::Find(const Reference& reference) const {
  if (reference.number.has_value()) return *reference.number;
  const auto mapping = mappings_.find(reference.mapping);
  if (mapping == mappings_.end()) return 0;
  if (reference.alias.empty()) return mapping->second.newest;
  const auto alias = mapping->second.aliases.find(reference.alias);
  return alias == mapping->second.aliases.end() ? 0 : alias->second;
}

void KnownNames::LearnNewest(absl::string_view mapping, int64_t number) {
  int64_t& newest = mappings_[mapping].newest;
  newest = std::max(newest, number);
}

void KnownNames::LearnAlias(absl::string_view mapping, absl::string_view alias, int64_t number) {
  mappings_[mapping].aliases[alias] = number;
}

void KnownNames::ForgetNewest(absl::string_view mapping) {
  const auto found = mappings_.find(mapping);
  if (found != mappings_.end()) found->second.newest = 0;
}

void KnownNames::ForgetAlias(absl::string_view mapping, absl::string_view alias) {
  const auto found = mappings_.find(mapping);
  if (found != mappings_.end()) found->second.aliases.erase(alias);
}

void KnownNames::ForgetMapping(absl::string_view mapping) { mappings_.erase(mapping); }

}  // namespace phimap
