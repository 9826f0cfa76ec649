#include "gtest/gtest.h"
#include "server/rpc/standard_services.h"
#include "tests/server/support/dispatcher_server.h"

namespace phimap::testing {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

class HealthServiceTest : public ::testing::Test {
 protected:
  HealthServiceTest() {
    AddHealthService(status_, server_.dispatcher);
    server_.Start();
  }

  int32_t Begin(const char* path, const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return server_.Begin(path, request, /*end=*/true);
  }
  HealthStatus::Serving Next(int32_t stream) {
    HealthCheckResponse response;
    return server_.Next(stream, response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }

  HealthStatus status_{{"a.Service", "b.Service"}};
  DispatcherServer server_;
};

TEST_F(HealthServiceTest, CheckTellsOfTheServerAndOfEachService) {
  status_.SetServing("b.Service", true);
  EXPECT_EQ(Next(Begin(kCheck, "")), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Next(Begin(kCheck, "a.Service")), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Next(Begin(kCheck, "b.Service")), HealthCheckResponse::SERVING);
  status_.SetServing(true);
  EXPECT_EQ(Next(Begin(kCheck, "")), HealthCheckResponse::SERVING);
  EXPECT_EQ(Next(Begin(kCheck, "a.Service")), HealthCheckResponse::SERVING);
}

TEST_F(HealthServiceTest, CheckOfAnUnknownServiceIsNotFound) {
  const int32_t stream = Begin(kCheck, "c.Service");
  EXPECT_EQ(server_.CodeOf(stream), 5);
  EXPECT_NE(server_.client->answer(stream).headers["grpc-message"].find("c.Service"),
            std::string::npos);
}

TEST_F(HealthServiceTest, WatchTellsAtOnceAndThenOfEachChange) {
  const int32_t one = Begin(kWatch, "a.Service");
  const int32_t all = Begin(kWatch, "");
  EXPECT_EQ(Next(one), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Next(all), HealthCheckResponse::NOT_SERVING);
  status_.SetServing("a.Service", true);
  EXPECT_EQ(Next(one), HealthCheckResponse::SERVING);
  status_.SetServing(true);
  EXPECT_EQ(Next(all), HealthCheckResponse::SERVING);
  status_.SetServing(false);
  EXPECT_EQ(Next(all), HealthCheckResponse::NOT_SERVING);
  // The watch `one` gets no message before this one, because its status did not change until now.
  EXPECT_EQ(Next(one), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, WatchOfAnUnknownServiceGoesOn) {
  const int32_t stream = Begin(kWatch, "c.Service");
  EXPECT_EQ(Next(stream), HealthCheckResponse::SERVICE_UNKNOWN);
  status_.SetServing(true);
  ASSERT_TRUE(server_.client->RoundTrip());
  EXPECT_FALSE(server_.client->answer(stream).ended);
}

TEST_F(HealthServiceTest, WatchIsServedWhileTheServerGoesAndEndsWhenItSaysSo) {
  status_.SetServing(true);
  server_.dispatcher.StopAccepting();
  const int32_t stream = Begin(kWatch, "");
  EXPECT_EQ(Next(stream), HealthCheckResponse::SERVING);
  status_.SetServing(false);
  EXPECT_EQ(Next(stream), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(server_.client->answer(stream).ended);
  status_.EndWatches();
  EXPECT_EQ(server_.CodeOf(stream), 14);
  // A watch that begins after the shutdown gets the status as well, and then ends.
  const int32_t late = Begin(kWatch, "");
  EXPECT_EQ(Next(late), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(server_.CodeOf(late), 14);
}

TEST_F(HealthServiceTest, ClientsThatGoAreNotToldAnyMore) {
  for (int i = 0; i < 10; ++i) {
    const int32_t stream = Begin(kWatch, "");
    EXPECT_EQ(Next(stream), HealthCheckResponse::NOT_SERVING);
    if (i % 2 == 0) server_.client->Reset(stream);
  }
  ASSERT_TRUE(server_.client->RoundTrip());
  server_.client.reset();
  server_.server->AwaitNoConnections();
  // The destructor of HealthStatus checks that no watch is left.
  status_.SetServing(true);
}

TEST_F(HealthServiceTest, ChangesOfOtherThreadsEndWithTheLastOfThem) {
  const int32_t stream = Begin(kWatch, "");
  EXPECT_EQ(Next(stream), HealthCheckResponse::NOT_SERVING);
  std::thread other([&] {
    for (int i = 0; i < 1'000; ++i) status_.SetServing(i % 2 == 0);
    status_.SetServing(true);
  });
  other.join();
  HealthStatus::Serving last = HealthCheckResponse::UNKNOWN;
  HealthCheckResponse response;
  while (last != HealthCheckResponse::SERVING || server_.client->answer(stream).body.size() > 0) {
    ASSERT_TRUE(server_.Next(stream, response));
    last = response.status();
  }
  ASSERT_TRUE(server_.client->RoundTrip());
}

}  // namespace
}  // namespace phimap::testing
