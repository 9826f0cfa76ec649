// Converts between blocks and messages without copying the values.
#ifndef PHIMAP_CLIENT_CPP_ROW_MESSAGES_H_
#define PHIMAP_CLIENT_CPP_ROW_MESSAGES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/example_block.h"
#include "phimap/v1/examples.pb.h"

namespace phimap::client {

// Moves the examples of a block into a message. REQUIRES: the block is not empty.
void ToExamples(ExampleBlock block, v1::Examples& examples);

// Moves the rows of the server's answer into a block. Returns kInternal if they are not
// `expected_rows` well-formed rows.
absl::StatusOr<RowBlock> FromAnswer(v1::DenseRows&& rows, int32_t expected_rows);

// Returns `block` with `column`, the residuals, appended in the type of the block. Returns
// kInternal if there is not one value per row.
absl::StatusOr<RowBlock> WithLastColumn(RowBlock block,
                                        const google::protobuf::RepeatedField<double>& column);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_ROW_MESSAGES_H_
