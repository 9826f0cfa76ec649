// Tests Export and Import over gRPC.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/chunk/artifact_chunk.h"
#include "server/mapping/artifact_calls.h"
#include "server/store/sha256.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/certified_artifact.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class ArtifactRpcTest : public ServerFixture {
 protected:
  ArtifactRpcTest() { Start(); }

  // Sets `bytes` to the exported artifact, and `first` to its first chunk.
  grpc::Status Export(const std::string& reference, std::string* bytes,
                      v1::ArtifactChunk* first = nullptr) {
    const auto reader = mappings_->Export(
        NewContext(), Parsed<v1::ExportRequest>("reference: '" + reference + "'"));
    bytes->clear();
    v1::ArtifactChunk chunk;
    while (reader->Read(&chunk)) {
      EXPECT_TRUE(CheckChunk(chunk, static_cast<int64_t>(bytes->size())).ok());
      EXPECT_EQ(chunk.has_version(), bytes->empty());
      if (first != nullptr && bytes->empty()) *first = chunk;
      *bytes += chunk.data();
    }
    return reader->Finish();
  }

  static v1::ImportRequest Chunk(int64_t offset, const std::string& data) {
    v1::ImportRequest request;
    FillChunk(offset, data, *request.mutable_chunk());
    return request;
  }
  static std::vector<v1::ImportRequest> Messages(const std::string& artifact,
                                                 const std::string& mapping = "copy",
                                                 size_t piece = 1000) {
    std::vector<v1::ImportRequest> messages = {
        Parsed<v1::ImportRequest>("name: '" + mapping + "'")};
    for (size_t at = 0; at < artifact.size(); at += piece) {
      messages.push_back(Chunk(static_cast<int64_t>(at), artifact.substr(at, piece)));
    }
    messages.push_back(Parsed<v1::ImportRequest>("digest: '" + Sha256Hex(artifact) + "'"));
    return messages;
  }
  grpc::Status Import(const std::vector<v1::ImportRequest>& messages, v1::Version* version) {
    const auto writer = mappings_->Import(NewContext(), version);
    for (const v1::ImportRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  std::string FeaturesOf(const std::string& reference) {
    v1::TransformResponse response;
    EXPECT_THAT(Transform(TransformOf(reference, UniformExamples(7, 3)), &response), IsOk());
    return response.features().float32_le();
  }
};

TEST_F(ArtifactRpcTest, WhatIsExportedAndImportedAnswersTheSameBits) {
  const v1::Version built = MustBuild("letter", "f2(landmarks=20)");
  std::string bytes;
  v1::ArtifactChunk first;
  ASSERT_TRUE(Export("letter@1", &bytes, &first).ok());
  EXPECT_EQ(first.version().SerializeAsString(), built.ref().SerializeAsString());
  EXPECT_EQ(first.artifact_size_bytes(), bytes.size());
  EXPECT_EQ(Sha256Hex(bytes), built.ref().digest());
  v1::Version imported;
  ASSERT_THAT(Import(Messages(bytes), &imported), IsOk());
  EXPECT_EQ(imported.ref().name(), "copy");
  EXPECT_EQ(imported.ref().number(), 1);
  EXPECT_EQ(imported.ref().digest(), built.ref().digest());
  EXPECT_TRUE(imported.imported());
  EXPECT_FALSE(built.imported());
  EXPECT_EQ(imported.certificate().SerializeAsString(), built.certificate().SerializeAsString());
  EXPECT_EQ(FeaturesOf("copy"), FeaturesOf("letter"));
}

TEST_F(ArtifactRpcTest, ALargeArtifactComesInManyChunks) {
  const v1::Version built = MustBuild("letter", "f1(landmarks=40)");
  const std::string large = CertifiedArtifact({.columns = 400, .feature_count = 500});
  ASSERT_GT(large.size(), 8 * kSentChunkBytes);
  v1::Version imported;
  ASSERT_TRUE(Import(Messages(large, "large", 1 << 20), &imported).ok());
  std::string bytes;
  ASSERT_TRUE(Export("large", &bytes).ok());
  EXPECT_EQ(bytes, large);
}

TEST_F(ArtifactRpcTest, ARepeatedImportIsTheSameVersion) {
  MustBuild();
  std::string bytes;
  ASSERT_TRUE(Export("letter", &bytes).ok());
  for (int i = 0; i < 3; ++i) {
    v1::Version imported;
    ASSERT_TRUE(Import(Messages(bytes), &imported).ok());
    EXPECT_EQ(imported.ref().number(), 1);
  }
  v1::Version same;
  ASSERT_TRUE(Import(Messages(bytes, "letter"), &same).ok());
  EXPECT_EQ(same.ref().number(), 1);
  EXPECT_FALSE(same.imported());
}

TEST_F(ArtifactRpcTest, AnAliasIsExportedAndUnknownNamesAreNotFound) {
  MustBuild("letter", "f1(landmarks=5)");
  MustBuild("letter", "f1(landmarks=6)");
  ASSERT_THAT(SetAlias("letter@1"), IsOk());
  std::string bytes;
  v1::ArtifactChunk first;
  ASSERT_TRUE(Export("letter@prod", &bytes, &first).ok());
  EXPECT_EQ(first.version().number(), 1);
  ASSERT_TRUE(Export("letter", &bytes, &first).ok());
  EXPECT_EQ(first.version().number(), 2);
  EXPECT_EQ(Export("letter@3", &bytes).error_code(), Code::NOT_FOUND);
  EXPECT_EQ(Export("letter@canary", &bytes).error_code(), Code::NOT_FOUND);
  EXPECT_EQ(Export("Letter", &bytes).error_code(), Code::INVALID_ARGUMENT);
}

TEST_F(ArtifactRpcTest, ADamagedArtifactIsNeverExportedWhole) {
  const v1::Version built = MustBuild();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (entry.path().filename() != built.ref().digest()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(200);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(200);
    file.put(byte);
  }
  std::string bytes;
  EXPECT_EQ(Export("letter", &bytes).error_code(), Code::DATA_LOSS);
  EXPECT_LT(static_cast<int64_t>(bytes.size()), built.artifact_size_bytes());
}

TEST_F(ArtifactRpcTest, AClientThatVanishesLeavesNothing) {
  const std::string artifact = CertifiedArtifact();
  {
    grpc::ClientContext context;
    v1::Version version;
    const auto writer = mappings_->Import(&context, &version);
    writer->Write(Parsed<v1::ImportRequest>("name: 'copy'"));
    writer->Write(Chunk(0, artifact.substr(0, 500)));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), Code::CANCELLED);
  }
  {
    MustBuild();
    grpc::ClientContext context;
    const auto reader =
        mappings_->Export(&context, Parsed<v1::ExportRequest>("reference: 'letter'"));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), Code::CANCELLED);
  }
  Stop();  // Stop returns once no call is left
  EXPECT_EQ(folder_.CountBlobs(), 1);
}

TEST_F(ArtifactRpcTest, AClientThatTakesNothingIsLetGoAndItsPlaceIsFree) {
  Stop();
  options_.build_idle_seconds = 1;
  Start();
  v1::BuildSpec spec = Spec("letter", "f2(landmarks=600, serving_type=float64)");
  spec.set_kernel("rbf(gamma=50)");
  ASSERT_TRUE(Build(spec, 700).ok());
  // With a flow-control window of 64 KiB, an artifact of 1.4 MB cannot be sent to a client that
  // does not read.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::MappingService::NewStub(grpc::CreateCustomChannel(
      server_->grpc_address(), grpc::InsecureChannelCredentials(), arguments));
  const auto request = Parsed<v1::ExportRequest>("reference: 'letter'");
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::ArtifactChunk>>> readers;
  for (int i = 0; i < kMaxExports; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub->Export(contexts.back().get(), request));
    v1::ArtifactChunk chunk;
    ASSERT_TRUE(readers.back()->Read(&chunk));
  }
  // Another export is refused until the server ends the call of one of the readers.
  std::string bytes;
  v1::ArtifactChunk first;
  grpc::Status status;
  do {
    bytes.clear();
    status = Export("letter", &bytes, &first);
  } while (FactsOf(status).reason == "EXPORT_LIMIT_REACHED");
  EXPECT_TRUE(status.ok()) << status.error_message();
  // Readers whose calls are still open get the rest of the artifact when they continue to read.
  int let_go = 0;
  for (const auto& reader : readers) {
    v1::ArtifactChunk chunk;
    while (reader->Read(&chunk)) {
    }
    const grpc::Status ended = reader->Finish();
    if (ended.error_code() == Code::CANCELLED) ++let_go;
    EXPECT_TRUE(ended.ok() || ended.error_code() == Code::CANCELLED) << ended.error_message();
  }
  EXPECT_GE(let_go, 1);
}

}  // namespace
}  // namespace phimap::testing
