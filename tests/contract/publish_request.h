// A request that tests of stores and catalogs publish.
#ifndef PHIMAP_TESTS_CONTRACT_PUBLISH_REQUEST_H_
#define PHIMAP_TESTS_CONTRACT_PUBLISH_REQUEST_H_

#include <string>

#include "server/store/records.h"

namespace phimap {

// Returns a request that is accepted for any mapping, as long as the mapping has no build with this
// id.
inline PublishRequest PublishRequestFor(const std::string& mapping, const std::string& build_id) {
  PublishRequest request;
  request.version.mapping = mapping;
  request.version.input_columns = 16;
  request.version.output_columns = 256;
  request.version.serving_type = "float32";
  request.version.spec_text = "f2(landmarks=256)";
  request.version.kernel_text = "rbf(gamma=0.5)";
  request.build_id = build_id;
  request.spec_digest = "spec-digest";
  request.rows_received = 1000;
  return request;
}

}  // namespace phimap

#endif  // PHIMAP_TESTS_CONTRACT_PUBLISH_REQUEST_H_
