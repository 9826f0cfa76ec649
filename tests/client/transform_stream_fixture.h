// A fixture for TransformStream: a real client, and a scripted server.
#ifndef PHIMAP_TESTS_CLIENT_TRANSFORM_STREAM_FIXTURE_H_
#define PHIMAP_TESTS_CLIENT_TRANSFORM_STREAM_FIXTURE_H_

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/client/scripted_server.h"

namespace phimap::client {

inline RowBlock OneColumn(int32_t rows) {
  std::vector<float> values(rows);
  std::iota(values.begin(), values.end(), 0.0f);
  return MakeRowBlock(absl::Span<const float>(values), 1);
}

// Returns an answer whose features are the rows of the request.
inline v1::TransformResponse EchoFeatures(const v1::TransformRequest& request, bool first) {
  v1::TransformResponse answer;
  if (first) {
    answer.mutable_version()->set_name("m");
    answer.mutable_version()->set_number(2);
  }
  *answer.mutable_features() = request.examples().dense();
  return answer;
}

class TransformStreamTest : public ::testing::Test {
 protected:
  absl::StatusOr<TransformStreamResult> Run(RowSource& rows,
                                            const TransformStreamOptions& options) {
    auto client = *Client::Connect(server_.target(), {});
    return client->TransformStream(
        "m", rows, [this](RowBlock block) { return Take(block); }, options);
  }
  absl::Status Take(const RowBlock& block) {
    if (static_cast<int>(seen_.size()) >= sink_fails_at_) return absl::InternalError("disk full");
    for (int32_t i = 0; i < block.rows; ++i) seen_.push_back(block.At(i, 0));
    return absl::OkStatus();
  }

  int sink_fails_at_ = 1 << 30;
  std::vector<double> seen_;
  ScriptedServer server_;
};

}  // namespace phimap::client

#endif  // PHIMAP_TESTS_CLIENT_TRANSFORM_STREAM_FIXTURE_H_
