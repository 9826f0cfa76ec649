// A version by its mapping and number.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_NAME_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_NAME_H_

#include <cstdint>
#include <string>

namespace phimap {

struct VersionName {
  std::string mapping;
  int64_t number = 0;

  friend auto operator<=>(const VersionName& a, const VersionName& b) = default;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_NAME_H_
