#include "client/cli/bench/bench_messages.h"

#include "absl/strings/str_cat.h"
#include "inference/inference_service.pb.h"
#include "phimap/v1/transform_service.pb.h"

namespace phimap::cli {
namespace {

std::string NativeBytes(const BenchRows& rows) {
  v1::TransformRequest request;
  request.set_reference(std::string(rows.reference));
  v1::DenseRows& dense = *request.mutable_examples()->mutable_dense();
  dense.set_rows(rows.rows);
  dense.set_columns(rows.columns);
  dense.set_float32_le(rows.values);
  return request.SerializeAsString();
}

std::string InferenceBytes(const BenchRows& rows) {
  inference::ModelInferRequest request;
  const size_t at = rows.reference.find('@');
  request.set_model_name(std::string(rows.reference.substr(0, at)));
  if (at != absl::string_view::npos) {
    request.set_model_version(std::string(rows.reference.substr(at + 1)));
  }
  auto& x = *request.add_inputs();
  x.set_name("x");
  x.set_datatype("FP32");
  x.add_shape(rows.rows);
  x.add_shape(rows.columns);
  request.add_raw_input_contents(rows.values);
  return request.SerializeAsString();
}

template <typename Message>
absl::StatusOr<Message> Parsed(absl::string_view bytes) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return absl::InternalError("the server's answer is not a message of its protocol");
}

absl::StatusOr<BenchAnswer> ReadNative(absl::string_view bytes) {
  const absl::StatusOr<v1::TransformResponse> answer = Parsed<v1::TransformResponse>(bytes);
  if (!answer.ok()) return answer.status();
  const v1::DenseRows& features = answer->features();
  return BenchAnswer{
      .version = absl::StrCat(answer->version().mapping(), "@", answer->version().number()),
      .rows = features.rows(),
      .feature_columns = features.columns(),
      .feature_bytes =
          static_cast<int64_t>(features.float32_le().size() + features.float64_le().size())};
}

absl::StatusOr<BenchAnswer> ReadInference(absl::string_view bytes) {
  const absl::StatusOr<inference::ModelInferResponse> answer =
      Parsed<inference::ModelInferResponse>(bytes);
  if (!answer.ok()) return answer.status();
  if (answer->outputs_size() != 1 || answer->outputs(0).shape_size() != 2 ||
      answer->raw_output_contents_size() != 1) {
    return absl::InternalError("the server's answer does not have one output of rows");
  }
  return BenchAnswer{.version = absl::StrCat(answer->model_name(), "@", answer->model_version()),
                     .rows = answer->outputs(0).shape(0),
                     .feature_columns = answer->outputs(0).shape(1),
                     .feature_bytes = static_cast<int64_t>(answer->raw_output_contents(0).size())};
}

}  // namespace

absl::string_view ProtocolName(BenchProtocol protocol) {
  return protocol == BenchProtocol::kNative ? "native" : "inference";
}

const std::string& MethodOf(BenchProtocol protocol) {
  static const std::string* const kNative =
      new std::string("/phimap.v1.TransformService/Transform");
  static const std::string* const kInference =
      new std::string("/inference.GRPCInferenceService/ModelInfer");
  return protocol == BenchProtocol::kNative ? *kNative : *kInference;
}

std::string RequestBytes(BenchProtocol protocol, const BenchRows& rows) {
  return protocol == BenchProtocol::kNative ? NativeBytes(rows) : InferenceBytes(rows);
}

absl::StatusOr<BenchAnswer> ReadAnswer(BenchProtocol protocol, absl::string_view bytes) {
  return protocol == BenchProtocol::kNative ? ReadNative(bytes) : ReadInference(bytes);
}

}  // namespace phimap::cli
