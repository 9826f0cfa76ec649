// Converts examples from the wire to a checked ExamplesView, without copying.
#ifndef PHIMAP_SERVER_TRANSFORM_EXAMPLES_FROM_PROTO_H_
#define PHIMAP_SERVER_TRANSFORM_EXAMPLES_FROM_PROTO_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/plan/examples.h"
#include "phimap/v1/examples.pb.h"

namespace phimap {

// Returns a view into `examples`, which must outlive the view unchanged. Checks shapes and lengths,
// in constant time (for strings, in time linear in their number). Does not check the values:
// CheckExamples does, and belongs on a worker because it reads all of them. Errors give the path of
// their field, beginning with "examples": INVALID_ARGUMENT (nothing set, rows or columns out of
// range, lengths that do not fit the shape).
absl::StatusOr<ExamplesView> ExamplesFromProto(const v1::Examples& examples);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_EXAMPLES_FROM_PROTO_H_
