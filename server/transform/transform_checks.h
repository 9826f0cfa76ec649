// Checks of a version, and of a request against it, for calls that map rows.
#ifndef PHIMAP_SERVER_TRANSFORM_TRANSFORM_CHECKS_H_
#define PHIMAP_SERVER_TRANSFORM_TRANSFORM_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/examples.h"
#include "server/registry/version_handle.h"

namespace phimap {

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

// Bytes that the residual adds to each row of an answer, and those of its allowance for rounding.
inline constexpr int64_t kResidualBytes = sizeof(double);
inline constexpr int64_t kAllowanceBytes = sizeof(double);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_TRANSFORM_CHECKS_H_
