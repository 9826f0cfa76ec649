#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "tests/client/scripted_server.h"

namespace phimap::client {
namespace {

// Returns the examples, which have one column, as features.
grpc::Status Echo(const v1::Examples& examples, v1::DenseRows& features) {
  features = examples.dense();
  return grpc::Status::OK;
}

RowBlock OneRow() { return MakeRowBlock(std::vector<float>{0.5f}, 1); }

class ClientChannelsTest : public ::testing::Test {
 protected:
  ClientChannelsTest() {
    server_.transform = [](const v1::TransformRequest& request, v1::TransformResponse& response) {
      return Echo(request.examples(), *response.mutable_features());
    };
    server_.transform_stream = [](TransformStreamStream& stream) {
      v1::TransformRequest request;
      while (stream.Read(&request)) {
        v1::TransformResponse response;
        Echo(request.examples(), *response.mutable_features());
        stream.Write(response);
      }
      return grpc::Status::OK;
    };
  }

  // Makes `calls` Transform calls, one after the other. Returns, for each call, the client's
  // address of its connection.
  std::vector<std::string> PeersOf(int calls, int channels) {
    auto client = Client::Connect(server_.target(), {.channels = channels}).value();
    for (int i = 0; i < calls; ++i) {
      const auto result = client->Transform("letters", OneRow()).value();
    }
    return server_.peers();
  }

  ScriptedServer server_;
};

TEST_F(ClientChannelsTest, OneConnectionByDefault) {
  const std::vector<std::string> peers = PeersOf(4, ConnectOptions().channels);
  EXPECT_EQ(std::set<std::string>(peers.begin(), peers.end()).size(), 1);
}

TEST_F(ClientChannelsTest, CallsTakeTheConnectionsInTurn) {
  const std::vector<std::string> peers = PeersOf(9, 3);
  ASSERT_EQ(peers.size(), 9);
  EXPECT_EQ(std::set<std::string>(peers.begin(), peers.end()).size(), 3);
  for (int i = 3; i < 9; ++i) EXPECT_EQ(peers[i], peers[i - 3]) << i;
}

TEST_F(ClientChannelsTest, ClientsDoNotShareConnections) {
  PeersOf(1, 1);
  const std::vector<std::string> peers = PeersOf(1, 1);
  EXPECT_NE(peers[0], peers[1]);
}

TEST_F(ClientChannelsTest, AStreamStaysOnOneConnectionAndTheNextTakesAnother) {
  auto client = Client::Connect(server_.target(), {.channels = 2}).value();
  for (int i = 0; i < 2; ++i) {
    MemoryRowSource source(OneRow());
    const auto result =
        client->TransformStream("letters", source, [](RowBlock) { return absl::OkStatus(); });
    ASSERT_TRUE(result.ok()) << result.status();
  }
  ASSERT_EQ(server_.peers().size(), 2);
  EXPECT_NE(server_.peers()[0], server_.peers()[1]);
}

TEST_F(ClientChannelsTest, AnotherNumberOfChannelsThanOneToSixtyFourIsRefused) {
  for (const int channels : {0, -1, 65}) {
    EXPECT_EQ(Client::Connect(server_.target(), {.channels = channels}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << channels;
  }
}

}  // namespace
}  // namespace phimap::client
