#include "server/registry/load_error.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kRetryDelayMs = 500;
constexpr int64_t kFullRetryDelayMs = 200;

}  // namespace

absl::Status NoMemoryToLoad() {
  try {
    return MakeError(Code::kResourceExhausted, "MACHINE_MEMORY_FULL", "",
                     "not enough memory to load the version", {}, kRetryDelayMs);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("");  // an error without a message needs no memory
  }
}

absl::Status TooManyWaiters(absl::string_view mapping, int limit) {
  return MakeError(Code::kResourceExhausted, "QUEUE_FULL", "",
                   absl::StrCat("too many requests wait for a version of \"", mapping,
                                "\" to be loaded; the limit is ", limit),
                   {{"limit", absl::StrCat(limit)}}, kRetryDelayMs);
}

absl::Status TooManyLoads(int limit) {
  return MakeError(Code::kResourceExhausted, "QUEUE_FULL", "",
                   absl::StrCat("too many version loads are waiting; the limit is ", limit),
                   {{"limit", absl::StrCat(limit)}}, kFullRetryDelayMs);
}

absl::Status LiveVersionsFull(absl::string_view mapping, int64_t number, int64_t bytes,
                              int64_t held, int64_t limit) {
  // A version that exceeds the limit by itself will not fit later either.
  const int64_t retry_delay_ms = bytes <= limit ? kRetryDelayMs : 0;
  return MakeError(
      Code::kResourceExhausted, "LIVE_VERSIONS_FULL", "",
      absl::StrCat("version ", number, " of \"", mapping, "\" needs ", bytes,
                   " bytes; live versions in use hold ", held, " of the limit of ", limit),
      {{"limit", absl::StrCat(limit)}}, retry_delay_ms);
}

}  // namespace phimap
