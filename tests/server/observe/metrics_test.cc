#include "server/observe/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"

namespace phimap {
namespace {

using ::testing::HasSubstr;

std::string Scrape(const Metrics& metrics) {
  return prometheus::TextSerializer().Serialize(metrics.collectable()->Collect());
}

TEST(MetricsTest, EverySeriesOfAMethodExistsBeforeTheFirstCall) {
  Metrics metrics;
  metrics.AddMethod("s.S", "M", "unary");
  const std::string text = Scrape(metrics);
  for (int code = 0; code < kStatusCodes; ++code) {
    const auto label = CodeLabel(static_cast<absl::StatusCode>(code));
    EXPECT_THAT(text,
                HasSubstr("grpc_server_handled_total{grpc_code=\"" + std::string(label) +
                          "\",grpc_method=\"M\",grpc_service=\"s.S\",grpc_type=\"unary\"} 0"));
  }
  EXPECT_THAT(text, HasSubstr("grpc_server_started_total{grpc_method=\"M\""));
  EXPECT_THAT(text, HasSubstr("grpc_server_msg_received_total{grpc_method=\"M\""));
  EXPECT_THAT(text, HasSubstr("grpc_server_msg_sent_total{grpc_method=\"M\""));
  EXPECT_THAT(text, HasSubstr("grpc_server_handling_seconds_count{grpc_method=\"M\""));
  EXPECT_THAT(text, HasSubstr("phimap_builds{state=\"computing\"} 0"));
  EXPECT_THAT(text, HasSubstr("phimap_transform_refused_total{reason=\"queue_full\"} 0"));
}

TEST(MetricsTest, CountsShowUp) {
  Metrics metrics;
  const MethodMetrics method = metrics.AddMethod("s.S", "M", "unary");
  method.started->Increment();
  method.handled[static_cast<int>(absl::StatusCode::kDataLoss)]->Increment();
  method.handling_seconds->Observe(30e-6);
  const std::string text = Scrape(metrics);
  EXPECT_THAT(text, HasSubstr("grpc_server_started_total{grpc_method=\"M\",grpc_service=\"s.S\","
                              "grpc_type=\"unary\"} 1"));
  EXPECT_THAT(text, HasSubstr("{grpc_code=\"DataLoss\",grpc_method=\"M\",grpc_service=\"s.S\","
                              "grpc_type=\"unary\"} 1"));
  // The first bucket ends at 25 µs: 30 µs is in the second.
  EXPECT_THAT(text, HasSubstr("le=\"2.5e-05\"} 0"));
}

TEST(MetricsTest, CodesAreNamedAsGoNamesThem) {
  EXPECT_EQ(CodeLabel(absl::StatusCode::kOk), "OK");
  EXPECT_EQ(CodeLabel(absl::StatusCode::kCancelled), "Canceled");
  EXPECT_EQ(CodeLabel(absl::StatusCode::kDataLoss), "DataLoss");
  EXPECT_EQ(CodeLabel(absl::StatusCode::kUnauthenticated), "Unauthenticated");
  EXPECT_EQ(CodeLabel(static_cast<absl::StatusCode>(99)), "Unknown");
}

}  // namespace
}  // namespace phimap
