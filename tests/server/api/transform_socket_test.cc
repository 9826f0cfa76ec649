// Tests the API on a Unix-domain socket, in addition to TCP.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class TransformSocketTest : public ServerFixture {
 protected:
  TransformSocketTest() { options_.unix_listen = path_; }

  v1::TransformResponse MustTransformBy(v1::TransformService::Stub& stub) {
    v1::TransformRequest request = TransformOf("letter", UniformExamples(3, 3));
    v1::TransformResponse response;
    grpc::ClientContext context;
    EXPECT_THAT(stub.Transform(&context, request, &response), IsOk());
    return response;
  }
  std::unique_ptr<v1::TransformService::Stub> SocketStub() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::TransformService::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("unix:", path_), grpc::InsecureChannelCredentials(), arguments));
  }
  // Starts a second server with `options`, and returns its error.
  absl::Status StartAnother(ServerOptions options) {
    const TemporaryFolder folder;
    options.data_dir = folder.path();
    auto store = SqliteStore::Open({.data_dir = options.data_dir}, PosixFileSystem());
    return Server::Start(options, *std::move(store), logger_).status();
  }

  TemporaryFolder sockets_;
  const std::string path_ = sockets_.path() + "/phimapd.sock";
};

TEST_F(TransformSocketTest, ServesTheSameBitsAsTcp) {
  Start();
  MustBuild();
  const auto by_socket = SocketStub();
  EXPECT_EQ(MustTransformBy(*by_socket).SerializeAsString(),
            MustTransformBy(*transforms_).SerializeAsString());
}

TEST_F(TransformSocketTest, OnlyItsUserMayConnectAndNothingIsLeftBehind) {
  Start();
  struct stat file {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);
  Stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TransformSocketTest, ASocketThatADeadServerLeftIsReplaced) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path_.size(), sizeof(name.sun_path));
  std::memcpy(name.sun_path, path_.data(), path_.size());
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(dead, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  close(dead);
  ASSERT_TRUE(std::filesystem::exists(path_));
  Start();
  MustBuild();
  MustTransformBy(*SocketStub());
}

TEST_F(TransformSocketTest, ASocketInUseAFileAndALongPathAreRefusedAndStay) {
  Start();
  MustBuild();
  ServerOptions options = options_;
  EXPECT_THAT(std::string(StartAnother(options).message()), HasSubstr("another server"));
  MustTransformBy(*SocketStub());  // the socket still belongs to the first server
  options.unix_listen = sockets_.path() + "/file";
  std::ofstream(options.unix_listen) << "precious";
  EXPECT_THAT(std::string(StartAnother(options).message()), HasSubstr("not a socket"));
  EXPECT_EQ(std::filesystem::file_size(options.unix_listen), 8);
  options.unix_listen = sockets_.path() + "/missing/phimapd.sock";
  EXPECT_THAT(std::string(StartAnother(options).message()), HasSubstr("folder"));
  options.unix_listen = std::string(200, 'x');
  EXPECT_EQ(StartAnother(options).code(), StatusCode::kInvalidArgument);
}

TEST_F(TransformSocketTest, CanBeTheOnlyListener) {
  options_.unix_listen.clear();
  options_.listen = absl::StrCat("unix:", path_);
  Start();
  MustBuild();
  EXPECT_EQ(server_->grpc_address(), options_.listen);
  EXPECT_EQ(MustTransformBy(*transforms_).features().rows(), 3);
  struct stat file {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);
}

}  // namespace
}  // namespace phimap::testing
