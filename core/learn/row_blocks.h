// Numbers of rows that learners and models process at a time.
#ifndef PHIMAP_CORE_LEARN_ROW_BLOCKS_H_
#define PHIMAP_CORE_LEARN_ROW_BLOCKS_H_

#include <cstdint>

namespace phimap {

// Rows that are scored between two checkpoints of the monitor.
inline constexpr int64_t kScoredRows = 1024;

// Rows whose kernel values, or whose products with separators, are computed at a time.
inline constexpr int64_t kKernelRows = 256;

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_ROW_BLOCKS_H_
