#include "server/memory_warnings.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/observe/process_memory.h"

namespace phimap {
namespace {

// Warns if the server could take more memory than its cgroup allows, which would kill it.
void WarnOfMemoryBeyondCgroup(const Logger& logger, const ServerOptions& options) {
  const int64_t worst = WorstCaseBytes(MemoryLimitsOf(options));
  if (!options.cgroup_memory_bytes.has_value() || worst <= *options.cgroup_memory_bytes) return;
  logger.Log(LogLevel::kWarning, "memory_beyond_cgroup",
             {{"worst_case_bytes", worst},
              {"cgroup_memory_bytes", *options.cgroup_memory_bytes},
              {"help",
               "the flags allow more memory than the container has, so it may be killed; lower "
               "--max_live_bytes, --memory_bytes, --build_memory_bytes or --max_connections, or "
               "leave them out, or raise the container's limit"}});
}

// Warns if the memory is too small for the largest message, whose bytes, parsed form and answer
// take three times its size. Messages of that size are then admitted one at a time, even beyond the
// limit. So every call is eventually answered, but the memory may exceed the limit.
void WarnOfSmallMemory(const Logger& logger, const ServerOptions& options) {
  if (options.memory_bytes / 3 >= options.max_message_bytes) return;
  logger.Log(LogLevel::kWarning, "memory_bytes_below_three_messages",
             {{"memory_bytes", options.memory_bytes},
              {"max_message_bytes", options.max_message_bytes},
              {"help",
               "--memory_bytes is too small for the largest messages; raise it to at least three "
               "times --max_message_bytes, or lower --max_message_bytes"}});
}

}  // namespace

void WarnOfMemory(const Logger& logger, const ServerOptions& options) {
  WarnOfMemoryBeyondCgroup(logger, options);
  WarnOfSmallMemory(logger, options);
}

}  // namespace phimap
