// Rows on the wire → RowsView, checked and not copied.
#ifndef PHIMAP_SERVER_RPC_ROWS_FROM_PROTO_H_
#define PHIMAP_SERVER_RPC_ROWS_FROM_PROTO_H_

#include "absl/status/statusor.h"
#include "core/plan/rows.h"
#include "phimap/v1/examples.pb.h"

namespace phimap {

// A view into `examples`, which must outlive it and stay as it is. Shape and length are checked
// here, in constant time; the values are not: CheckFinite passes over all of them and belongs on a
// worker. Errors name their field from "examples" on: INVALID_ARGUMENT (nothing set, rows or
// columns out of range, another length than rows × columns), UNIMPLEMENTED (sparse rows, bytes,
// text).
absl::StatusOr<RowsView> RowsFromProto(const v1::Examples& examples);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_ROWS_FROM_PROTO_H_
