// The parts of messages that all calls with rows share: their limits, the examples, the name of the
// version, and what a request says that its version must be.
#ifndef PHIMAP_SERVER_TRANSFORM_ROW_MESSAGES_H_
#define PHIMAP_SERVER_TRANSFORM_ROW_MESSAGES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/examples.h"
#include "core/status/error.h"
#include "phimap/v1/examples.pb.h"
#include "phimap/v1/mapping.pb.h"
#include "server/registry/version_handle.h"
#include "server/store/store.h"

namespace phimap {

// Limits of messages.
inline constexpr int64_t kMaxRowsPerMessage = 65536;
inline constexpr int64_t kMaxColumnsPerMessage = 65536;

// Converts a version's record to a VersionRef. Separate from the conversions of mappings, because
// serving does not depend on certificates.
inline void RefToProto(const VersionRecord& record, v1::VersionRef* out) {
  out->set_name(record.mapping);
  out->set_number(record.number);
  out->set_digest(record.digest);
}

// Converts examples from the wire to a checked view into `examples`, without copying. They must
// outlive the view unchanged. Checks shapes and lengths, in constant time (for strings, in time
// linear in their number). Does not check the values: CheckExamples does, and belongs on a worker
// because it reads all of them. Errors give the path of their field, beginning with "examples":
// INVALID_ARGUMENT (nothing set, rows or columns out of range, lengths that do not fit the shape).
absl::StatusOr<ExamplesView> ExamplesFromProto(const v1::Examples& examples);

// Returns the path of examples of this kind in requests, such as "examples.dense.".
absl::string_view RowsField(ExampleKind kind);

// Returns FAILED_PRECONDITION (reason DIGEST_MISMATCH, field "expected_digest") unless `expected`
// is empty or the version's digest.
absl::Status CheckDigest(const VersionHandle& version, absl::string_view expected);

// Returns INVALID_ARGUMENT (reason COLUMN_NAMES_MISMATCH, with `field`) if the version has column
// names and `hash` is neither 0 nor the hash of these names.
absl::Status CheckColumnNamesHash(const VersionHandle& version, uint64_t hash,
                                  absl::string_view field);

// Returns the version's residual. Returns FAILED_PRECONDITION (reason RESIDUAL_NOT_AVAILABLE, with
// `field`) if the version has none, or INVALID_ARGUMENT (reason SELF_VALUES_MISSING) if the rows of
// a precomputed kernel lack K(x, x), which cannot be computed from them.
absl::StatusOr<const Residual*> ResidualOf(const VersionHandle& version, const ExamplesView& rows,
                                           absl::string_view field);

// Rejects fields that only the first request of a stream may have, as they name its version.
template <typename Request>
absl::Status CheckNamesNoVersion(const Request& request) {
  const char* const field = !request.reference().empty()         ? "reference"
                            : !request.expected_digest().empty() ? "expected_digest"
                            : request.column_names_hash() != 0   ? "column_names_hash"
                                                                 : nullptr;
  if (field == nullptr) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldUnexpected, field,
                   "expected in the first request only");
}

// Adds the number of a request in its stream to an error.
absl::Status WithRequestNumber(const absl::Status& status, int64_t number);

// Bytes that the residual adds to each row of an answer, and those of its allowance for rounding.
inline constexpr int64_t kResidualBytes = sizeof(double);
inline constexpr int64_t kAllowanceBytes = sizeof(double);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_ROW_MESSAGES_H_
