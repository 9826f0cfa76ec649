// A client of the Open Inference Protocol, beside the native one of the fixture.
#ifndef PHIMAP_TESTS_SERVER_RPC_INFERENCE_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_RPC_INFERENCE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "inference/inference_service.grpc.pb.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {

class InferenceFixture : public ServerFixture {
 protected:
  void Start() {
    ServerFixture::Start();
    inferences_ = inference::GRPCInferenceService::NewStub(channel_);
  }

  // Rows of mapping "letter" as the native request holds them, float32, in raw contents.
  static inference::ModelInferRequest RawRequest(const v1::Examples& examples);
  // The numbers of `examples`, widened if `datatype` is FP64, in typed contents.
  static inference::ModelInferRequest TypedRequest(const v1::Examples& examples,
                                                   const std::string& datatype);
  grpc::Status Infer(const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response);
  // The bytes of "features"; must succeed.
  std::string MustInfer(const inference::ModelInferRequest& request);
  // The bytes that the native call answers with; must succeed.
  std::string NativeFeatures(const v1::Examples& examples, const std::string& reference = "letter");

  std::unique_ptr<inference::GRPCInferenceService::Stub> inferences_;
};

// Float32 numbers of dense examples.
std::vector<float> FloatsOf(const v1::Examples& examples);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_RPC_INFERENCE_FIXTURE_H_
