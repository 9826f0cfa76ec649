// Limits of messages.
#ifndef PHIMAP_SERVER_TRANSFORM_LIMITS_H_
#define PHIMAP_SERVER_TRANSFORM_LIMITS_H_

#include <cstdint>

namespace phimap {

inline constexpr int64_t kMaxRowsPerMessage = 65536;
inline constexpr int64_t kMaxColumnsPerMessage = 65536;
inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 1000;

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_LIMITS_H_
