// What is known of names without asking the store: the newest version of a mapping, and where its
// aliases point.
//
// Not thread-safe; the registry guards it.
#ifndef PHIMAP_SERVER_REGISTRY_KNOWN_NAMES_H_
#define PHIMAP_SERVER_REGISTRY_KNOWN_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/registry/reference.h"

namespace phimap {

class KnownNames {
 public:
  // The number that `reference` means; 0 when that is not known.
  int64_t Find(const Reference& reference) const;

  // `number` exists: it is the newest version unless a newer one is known.
  void LearnNewest(absl::string_view mapping, int64_t number);
  void LearnAlias(absl::string_view mapping, absl::string_view alias, int64_t number);
  void ForgetNewest(absl::string_view mapping);
  void ForgetAlias(absl::string_view mapping, absl::string_view alias);
  void ForgetMapping(absl::string_view mapping);

 private:
  struct Mapping {
    int64_t newest = 0;
    absl::flat_hash_map<std::string, int64_t> aliases;
  };
  absl::flat_hash_map<std::string, Mapping> mappings_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_KNOWN_NAMES_H_
