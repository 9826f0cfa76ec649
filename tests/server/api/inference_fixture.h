// A server fixture with a client of the Open Inference Protocol, in addition to the native client.
#ifndef PHIMAP_TESTS_SERVER_API_INFERENCE_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_API_INFERENCE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "inference/inference_service.grpc.pb.h"
#include "tests/server/api/server_fixture.h"

namespace phimap::testing {

class InferenceFixture : public ServerFixture {
 protected:
  void Start() {
    ServerFixture::Start();
    inferences_ = inference::GRPCInferenceService::NewStub(channel_);
  }

  // A request for mapping "letter" with the float32 rows of `examples` in raw contents.
  static inference::ModelInferRequest RawRequest(const v1::Examples& examples);
  // A request with the numbers of `examples` in typed contents, as doubles if `datatype` is FP64.
  static inference::ModelInferRequest TypedRequest(const v1::Examples& examples,
                                                   const std::string& datatype);
  grpc::Status Infer(const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response);
  // Returns the bytes of the output "features"; the call must succeed.
  std::string MustInfer(const inference::ModelInferRequest& request);
  // Returns the bytes of the features that phimap's own Transform call returns. The call must
  // succeed.
  std::string NativeFeatures(const v1::Examples& examples, const std::string& reference = "letter");

  std::unique_ptr<inference::GRPCInferenceService::Stub> inferences_;
};

// The float32 numbers of dense examples.
std::vector<float> FloatsOf(const v1::Examples& examples);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_API_INFERENCE_FIXTURE_H_
