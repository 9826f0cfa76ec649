// Tests that the server holds only a few answers for a client that sends requests but does not read
// the answers.
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "tests/e2e/server_process.h"

namespace phimap::e2e {
namespace {

constexpr int kSlowRows = 1024;
constexpr int kFeatures = 4000;
constexpr int kRequests = 60;

// A request of kSlowRows rows with one column. Its 4 KiB of rows become 16 MiB of features.
v1::TransformRequest Request(int number) {
  v1::TransformRequest request;
  if (number == 0) request.set_reference("wide");
  v1::DenseRows& rows = *request.mutable_examples()->mutable_dense();
  rows.set_rows(kSlowRows);
  rows.set_columns(1);
  rows.set_float32_le(std::string(kSlowRows * 4, '\0'));
  return request;
}

TEST(SlowReaderTest, AnswersThatNobodyFetchesStayWithinTheWindow) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  GeneratedRows rows(5000, 1, 1);
  ASSERT_TRUE(
      server.Connect()
          ->Build({.name = "wide", .spec = "f1(landmarks=4000)", .kernel = "rbf(gamma=1)"}, rows)
          .ok());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  const auto stub = v1::TransformService::NewStub(
      grpc::CreateCustomChannel(server.address(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  const auto stream = stub->TransformStream(&context);
  ASSERT_TRUE(stream->Write(Request(0)));
  v1::TransformResponse response;
  ASSERT_TRUE(stream->Read(&response));  // now the version is live
  const int64_t before = server.PeakMemoryBytes();
  // Flow control makes the writer wait until the answers are read.
  std::thread writer([&stream] {
    for (int i = 1; i < kRequests; ++i) EXPECT_TRUE(stream->Write(Request(i)));
    EXPECT_TRUE(stream->WritesDone());
  });
  // If the server had read all requests of the stream, it could compute all answers while these
  // calls run. An answer takes 20 ms to compute, and many times as long to arrive here.
  const std::vector<float> row(kSlowRows, 0.0f);
  const auto other = server.Connect();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(other->Transform("wide", client::MakeRowBlock(absl::MakeConstSpan(row), 1)).ok());
  }
  const int64_t after = server.PeakMemoryBytes();
  int answers = 1;
  while (stream->Read(&response)) {
    ++answers;
    EXPECT_EQ(response.features().rows(), kSlowRows);
    EXPECT_EQ(response.features().columns(), kFeatures);
  }
  writer.join();
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answers, kRequests);
  std::cout << "peak rose by " << (after - before) / 1048576.0 << " MiB for "
            << (kRequests - 1) * 16 << " MiB of answers\n";
  // The bound allows one answer and its copy in the transport, for the stream and for the other
  // client. When the server counted only requests and not answers, it held all 32 answers of a
  // window, which are 500 MiB.
  EXPECT_LT(after - before, int64_t{200} << 20);
}

}  // namespace
}  // namespace phimap::e2e
