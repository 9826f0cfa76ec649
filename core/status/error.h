// Errors that teach. An error has a canonical code, a message for people, and the facts of the
// message in machine-readable form. The facts are a payload of absl::Status. The RPC layer turns
// them into typed details without parsing the message.
//
// Example:
//   return MakeError(absl::StatusCode::kInvalidArgument, reason::kColumnsMismatch,
//                    "examples.dense.columns", "expected 16 columns, got 15",
//                    {{"expected", "16"}, {"actual", "15"}});
#ifndef PHIMAP_CORE_STATUS_ERROR_H_
#define PHIMAP_CORE_STATUS_ERROR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/status/reason.h"  // IWYU pragma: export

namespace phimap {

// The machine-readable part of an error.
struct ErrorDetail {
  // One of core/status/reason.h; a client may get one from a newer server that it does not know.
  std::string reason;
  // Path of the field from the request's root, with rows and columns counted from 0. Empty if no
  // field is at fault.
  std::string field;
  // Values from the message: "expected", "actual", "limit", "row", "column" …
  std::map<std::string, std::string> metadata;
  // Time after which a client may retry; 0 if waiting does not help.
  int64_t retry_delay_ms = 0;
};

// Returns a status with an ErrorDetail attached. If `field` is not empty, the message becomes
// "field: message". REQUIRES: code is not OK.
absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view field,
                       absl::string_view message, std::map<std::string, std::string> metadata = {},
                       int64_t retry_delay_ms = 0);

// Returns the error with "; " and `remedy` after its message: what the caller can do about it.
// REQUIRES: `problem` is an error.
absl::Status WithRemedy(absl::Status problem, absl::string_view remedy);
// Returns the error's message without the remedy that WithRemedy added, if it did.
absl::string_view ProblemOf(const absl::Status& status);

// Returns the error's message without the field that MakeError put before it.
absl::string_view WithoutField(const absl::Status& status);

// Returns the detail that MakeError attached; nullopt for any other status.
std::optional<ErrorDetail> DetailOf(const absl::Status& status);

// Puts `prefix` before the error's field ("spec." + "landmarks"); an error without a field is
// unchanged.
absl::Status WithFieldPrefix(const absl::Status& status, absl::string_view prefix);
// Replaces the error's field by `field`; an error without a field is unchanged.
absl::Status WithField(const absl::Status& status, absl::string_view field);

// Prepares a caller's text for an error message. Cuts the text after 100 bytes and escapes
// characters that cannot be printed. If the text is not valid UTF-8, escapes all bytes that are not
// ASCII.
std::string Excerpt(absl::string_view text);
// Excerpt(text) in quotes.
std::string Quoted(absl::string_view text);

// For lists of names in messages.
// Returns "a", "a or b", or "a, b or c". REQUIRES: at least one name.
std::string Alternatives(absl::Span<const absl::string_view> names);
std::string Alternatives(absl::Span<const std::string> names);

}  // namespace phimap

#endif  // PHIMAP_CORE_STATUS_ERROR_H_
