#include "tests/server/api/inference_fixture.h"

#include <cstring>

namespace phimap::testing {
namespace {

inference::ModelInferRequest Shaped(const v1::Examples& examples, const std::string& datatype) {
  inference::ModelInferRequest request;
  request.set_model_name("letter");
  auto& x = *request.add_inputs();
  x.set_name("x");
  x.set_datatype(datatype);
  x.add_shape(examples.dense().rows());
  x.add_shape(examples.dense().columns());
  return request;
}

}  // namespace

std::vector<float> FloatsOf(const v1::Examples& examples) {
  const std::string& bytes = examples.dense().float32_le();
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

inference::ModelInferRequest InferenceFixture::RawRequest(const v1::Examples& examples) {
  inference::ModelInferRequest request = Shaped(examples, "FP32");
  request.add_raw_input_contents(examples.dense().float32_le());
  return request;
}

inference::ModelInferRequest InferenceFixture::TypedRequest(const v1::Examples& examples,
                                                            const std::string& datatype) {
  inference::ModelInferRequest request = Shaped(examples, datatype);
  inference::InferTensorContents& contents = *request.mutable_inputs(0)->mutable_contents();
  for (const float number : FloatsOf(examples)) {
    if (datatype == "FP32") {
      contents.add_fp32_contents(number);
    } else {
      contents.add_fp64_contents(number);
    }
  }
  return request;
}

grpc::Status InferenceFixture::Infer(const inference::ModelInferRequest& request,
                                     inference::ModelInferResponse* response) {
  return inferences_->ModelInfer(NewContext(), request, response);
}

std::string InferenceFixture::MustInfer(const inference::ModelInferRequest& request) {
  inference::ModelInferResponse response;
  EXPECT_THAT(Infer(request, &response), IsOk());
  EXPECT_EQ(response.raw_output_contents_size(), 1);
  return response.raw_output_contents_size() == 1 ? response.raw_output_contents(0) : "";
}

std::string InferenceFixture::NativeFeatures(const v1::Examples& examples,
                                             const std::string& reference) {
  v1::TransformResponse response;
  EXPECT_THAT(Transform(TransformOf(reference, examples), &response), IsOk());
  const v1::DenseRows& features = response.features();
  return features.has_float32_le() ? features.float32_le() : features.float64_le();
}

}  // namespace phimap::testing
