#include "server/observe/process_memory.h"

#include <algorithm>

namespace phimap {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Libraries, threads, and the first allocations of each kind.
constexpr int64_t kBaseBytes = 64 * kMiB;
// A process that may take exactly its limit is killed when something beside it needs memory.
constexpr double kUsable = 0.9;

struct Part {
  // Bytes of memory for each unit of the limit.
  double cost;
  // Share of the memory that is left for all parts.
  double share;
  int64_t least;
};
// By MemoryPart. The shares are those of a container of 2 GiB, rounded.
constexpr std::array<Part, kMemoryParts> kParts = {{
    {1.25, 0.40, 16 * kMiB},
    {1, 0.15, 16 * kMiB},
    {1, 0.30, 16 * kMiB},
    {0.5 * kMiB, 0.15, 16},
}};

}  // namespace

int64_t WorstCaseBytes(const MemoryLimits& limits) {
  double bytes = kBaseBytes;
  for (int i = 0; i < kMemoryParts; ++i) bytes += kParts[i].cost * static_cast<double>(limits[i]);
  return static_cast<int64_t>(bytes);
}

MemoryLimits FitInto(int64_t bytes, MemoryLimits limits,
                     const std::array<bool, kMemoryParts>& given) {
  const auto usable = static_cast<int64_t>(kUsable * static_cast<double>(bytes));
  if (WorstCaseBytes(limits) <= usable) return limits;
  std::array<bool, kMemoryParts> settled = given;
  // What a part with a low default leaves goes to the others.
  for (bool again = true; again;) {
    again = false;
    double left = static_cast<double>(usable - kBaseBytes);
    double shares = 0;
    for (int i = 0; i < kMemoryParts; ++i) {
      if (settled[i]) left -= kParts[i].cost * static_cast<double>(limits[i]);
      if (!settled[i]) shares += kParts[i].share;
    }
    if (shares == 0) return limits;
    const auto fitting = [&](const Part& part) {
      return static_cast<int64_t>(std::max(left, 0.0) * part.share / shares / part.cost);
    };
    for (int i = 0; i < kMemoryParts; ++i) {
      if (settled[i] || fitting(kParts[i]) < limits[i]) continue;
      settled[i] = true;
      again = true;
    }
    if (again) continue;
    for (int i = 0; i < kMemoryParts; ++i) {
      if (!settled[i])
        limits[i] = std::min(limits[i], std::max(fitting(kParts[i]), kParts[i].least));
    }
  }
  return limits;
}

}  // namespace phimap
