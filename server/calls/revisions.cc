#include "server/calls/revisions.h"

#include <algorithm>
#include <array>

namespace phimap {
namespace {

constexpr std::array<absl::string_view, 6> kChanging = {
    "phimap.v1.MappingService/Build",         "phimap.v1.MappingService/Import",
    "phimap.v1.MappingService/SetAlias",      "phimap.v1.MappingService/DeleteAlias",
    "phimap.v1.MappingService/DeleteVersion", "phimap.v1.MappingService/DeleteMapping"};

}  // namespace

bool ChangesNames(absl::string_view method) {
  return std::find(kChanging.begin(), kChanging.end(), method) != kChanging.end();
}

}  // namespace phimap
