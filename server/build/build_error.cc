#include "server/build/build_error.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/words.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

}  // namespace

bool IsTransient(const absl::Status& error) {
  return error.code() == Code::kResourceExhausted || error.code() == Code::kUnavailable ||
         error.code() == Code::kAborted;
}

absl::Status OtherSpec(const BuildId& id) {
  return MakeError(Code::kAlreadyExists, reason::kBuildSpecMismatch, "spec.build_id",
                   absl::StrCat("build ", id.build_id, " of \"", id.mapping,
                                "\" already exists with another spec; use a new UUID"));
}

absl::Status StillOpen(const BuildId& id) {
  return MakeError(Code::kAborted, reason::kStreamOpen, "spec.build_id",
                   absl::StrCat("build ", id.build_id, " of \"", id.mapping,
                                "\" still receives rows from another stream"),
                   {}, kBuildRetryDelayMs);
}

absl::Status WrongRowCount(int64_t sent, int64_t came) {
  return MakeError(
      Code::kDataLoss, reason::kRowCountMismatch, "finish.row_count",
      absl::StrCat("the client reports ", CountOf(sent, "row"), ", but the server received ", came),
      {{"expected", absl::StrCat(sent)}, {"actual", absl::StrCat(came)}});
}

absl::Status TooManyBuilds(int unfinished, absl::string_view limits, int limit) {
  return MakeError(Code::kResourceExhausted, reason::kBuildLimitReached, "",
                   absl::StrCat(CountOf(unfinished, "build"), unfinished == 1 ? " is" : " are",
                                " not finished; the limit is ", limits),
                   {{"limit", absl::StrCat(limit)}}, kBuildRetryDelayMs);
}

absl::Status ShuttingDown(absl::string_view what) {
  return MakeError(Code::kUnavailable, reason::kServerShuttingDown, "", what, {},
                   kBuildRetryDelayMs);
}

absl::Status CancelledByCall() {
  return MakeError(Code::kCancelled, reason::kBuildCancelled, "",
                   "the build was cancelled by CancelBuild");
}

absl::Status AbortedByRestart() {
  return MakeError(Code::kAborted, reason::kBuildInterrupted, "",
                   "the server ended before the build was done, and its client had left; send the "
                   "stream again with a new UUID");
}

absl::Status NoSuchBuild(const BuildId& id) {
  return MakeError(Code::kNotFound, reason::kBuildNotFound, "build_id",
                   absl::StrCat("mapping \"", id.mapping, "\" has no build ", id.build_id));
}

absl::Status OutOfMemory() {
  return MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "",
                   "not enough memory for this build", {}, kBuildRetryDelayMs);
}

}  // namespace phimap
