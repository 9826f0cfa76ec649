// Checks that every message that protobuf can parse has a cost, and that the cost is an upper bound
// of the memory that parsing allocates. The first byte of an input chooses the message type, and
// the rest is the message.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status/check.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "inference/inference_service.pb.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/rpc/message_cost.h"
#include "tests/server/rpc/parse_memory.h"

namespace phimap {
namespace {

struct Type {
  const google::protobuf::Message& prototype;
  MessageCost cost;
};

template <typename... Messages>
std::vector<Type> TypesOf() {
  return {Type{Messages::default_instance(), MessageCost(*Messages::descriptor())}...};
}

// Add new types only at the end, so that the corpus files keep their types.
const std::vector<Type>& Types() {
  static const auto* const kTypes = new std::vector<Type>(
      TypesOf<v1::TransformRequest, inference::ModelInferRequest, v1::BuildRequest,
              v1::EvaluateRequest, google::protobuf::Struct, inference::InferTensorContents,
              inference::ModelMetadataResponse>());
  return *kTypes;
}

void Check(const Type& type, absl::string_view bytes) {
  const testing::ParseMemory memory = testing::MemoryOfParse(type.prototype, bytes);
  const absl::StatusOr<int64_t> cost = type.cost.Of(bytes);
  if (!memory.parsed) return;  // texts that are not UTF-8 have a cost, but are not parsed
  PHIMAP_CHECK(cost.ok());
  PHIMAP_CHECK(*cost >= memory.peak);
}

}  // namespace
}  // namespace phimap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  google::protobuf::SetLogHandler(nullptr);  // protobuf would log every text that is not UTF-8
  const auto& types = phimap::Types();
  phimap::Check(types[data[0] % types.size()],
                absl::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
