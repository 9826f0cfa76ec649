// Tests messages of a few hundred kilobytes of gzip that inflate to hundreds of megabytes. gRPC's
// own server would inflate a message before it checked its size.
#include <iostream>
#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"

namespace phimap::e2e {
namespace {

constexpr size_t kInflatedBytes = size_t{256} << 20;
// The server's memory may grow by at most this much.
constexpr int64_t kRoomBytes = 64 << 20;

// Sends one message of zeros, compressed by gRPC, to `method`.
grpc::Status SendBomb(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      grpc_compression_algorithm algorithm) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_compression_algorithm(algorithm);
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  next();
  const grpc::Slice zeros(std::string(kInflatedBytes, '\0'));
  call->WriteLast(grpc::ByteBuffer(&zeros, 1), grpc::WriteOptions(), nullptr);
  next();
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return status;
}

TEST(CompressionBombTest, ACompressedMessageIsRefusedBeforeItTakesMemory) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto channel =
      grpc::CreateCustomChannel(server.address(), grpc::InsecureChannelCredentials(), arguments);
  const int64_t before = server.PeakMemoryBytes();
  for (const char* method :
       {"/phimap.v1.TransformService/Transform", "/phimap.v1.TransformService/TransformStream",
        "/phimap.v1.MappingService/Build", "/inference.GRPCInferenceService/ModelInfer",
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    SCOPED_TRACE(method);
    const grpc::Status status = SendBomb(channel, method, GRPC_COMPRESS_GZIP);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  }
  const grpc::Status deflate =
      SendBomb(channel, "/phimap.v1.TransformService/Transform", GRPC_COMPRESS_DEFLATE);
  EXPECT_EQ(deflate.error_code(), grpc::StatusCode::UNIMPLEMENTED) << deflate.error_message();
  const int64_t rise = server.PeakMemoryBytes() - before;
  std::cout << "peak rose by " << rise / 1048576.0 << " MiB\n";
  EXPECT_LT(rise, kRoomBytes);
  EXPECT_TRUE(server.Connect()->ListMappings().ok());
}

}  // namespace
}  // namespace phimap::e2e
