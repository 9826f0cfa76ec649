// Checks of a version, and of the request against it, for calls that map rows.
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

// Path of examples of a kind in the requests: "examples.dense.".
absl::string_view RowsField(ExampleKind kind);

// FAILED_PRECONDITION (reason DIGEST_MISMATCH, field "expected_digest") unless `expected` is empty
// or the version's.
absl::Status CheckDigest(const VersionHandle& version, absl::string_view expected);

// INVALID_ARGUMENT (reason COLUMN_NAMES_MISMATCH, with `field`) if the version has column names and
// `hash`, which is not 0, is that of others.
absl::Status CheckColumnNamesHash(const VersionHandle& version, uint64_t hash,
                                  absl::string_view field);

// The version's residual. FAILED_PRECONDITION (reason RESIDUAL_NOT_AVAILABLE, with `field`) if it
// has none; INVALID_ARGUMENT (reason SELF_VALUES_MISSING) if the rows lack K(x, x), which it cannot
// compute.
absl::StatusOr<const Residual*> ResidualOf(const VersionHandle& version, const ExamplesView& rows,
                                           absl::string_view field);

// Bytes that residuals add to a row of the answer.
inline constexpr int64_t kResidualBytes = sizeof(double);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_TRANSFORM_CHECKS_H_
