// Examples on the wire → ExamplesView, checked and not copied.
#ifndef PHIMAP_SERVER_TRANSFORM_EXAMPLES_FROM_PROTO_H_
#define PHIMAP_SERVER_TRANSFORM_EXAMPLES_FROM_PROTO_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/plan/examples.h"
#include "phimap/v1/examples.pb.h"

namespace phimap {

// A view into `examples`, which must outlive it and stay as it is. Shapes and lengths are checked
// here, in constant time (of strings, in the time that adds up their lengths); the values are not:
// CheckExamples passes over all of them and belongs on a worker. Errors name their field from
// "examples" on: INVALID_ARGUMENT (nothing set, rows or columns out of range, lengths that do not
// fit the shape).
absl::StatusOr<ExamplesView> ExamplesFromProto(const v1::Examples& examples);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_EXAMPLES_FROM_PROTO_H_
