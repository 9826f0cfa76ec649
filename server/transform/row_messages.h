// The parts of messages that all calls with rows share: their limits, the examples, and the name of
// the version.
#ifndef PHIMAP_SERVER_TRANSFORM_ROW_MESSAGES_H_
#define PHIMAP_SERVER_TRANSFORM_ROW_MESSAGES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/plan/examples.h"
#include "phimap/v1/examples.pb.h"
#include "phimap/v1/mapping.pb.h"
#include "server/store/store.h"

namespace phimap {

// Limits of messages.
inline constexpr int64_t kMaxRowsPerMessage = 65536;
inline constexpr int64_t kMaxColumnsPerMessage = 65536;

// Converts a version's record to a VersionRef. Separate from the conversions of mappings, because
// serving does not depend on certificates.
inline void RefToProto(const VersionRecord& record, v1::VersionRef* out) {
  out->set_mapping(record.mapping);
  out->set_number(record.number);
  out->set_digest(record.digest);
}

// Converts examples from the wire to a checked view into `examples`, without copying. They must
// outlive the view unchanged. Checks shapes and lengths, in constant time (for strings, in time
// linear in their number). Does not check the values: CheckExamples does, and belongs on a worker
// because it reads all of them. Errors give the path of their field, beginning with "examples":
// INVALID_ARGUMENT (nothing set, rows or columns out of range, lengths that do not fit the shape).
absl::StatusOr<ExamplesView> ExamplesFromProto(const v1::Examples& examples);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_ROW_MESSAGES_H_
