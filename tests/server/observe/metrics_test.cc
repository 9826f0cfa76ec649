#include "server/observe/metrics.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "tests/support/matchers.h"
#include "tests/support/source_dir.h"

namespace phimap::testing {
namespace {

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
  EXPECT_THAT(text, HasSubstr("phimap_transform_dropped_total{reason=\"deadline\"} 0"));
  for (const absl::string_view reason : RefusalReasons()) {
    EXPECT_THAT(text, HasSubstr("phimap_refused_total{grpc_service=\"s.S\",reason=\"" +
                                absl::AsciiStrToLower(reason) + "\"} 0"));
  }
}

TEST(MetricsTest, CountsShowUp) {
  Metrics metrics;
  const MethodMetrics method = metrics.AddMethod("s.S", "M", "unary");
  method.started->Increment();
  method.Ended(absl::DataLossError("damaged"), 30e-6);
  const std::string text = Scrape(metrics);
  EXPECT_THAT(text, HasSubstr("grpc_server_started_total{grpc_method=\"M\",grpc_service=\"s.S\","
                              "grpc_type=\"unary\"} 1"));
  EXPECT_THAT(text, HasSubstr("{grpc_code=\"DataLoss\",grpc_method=\"M\",grpc_service=\"s.S\","
                              "grpc_type=\"unary\"} 1"));
  // The first bucket ends at 25 µs, so 30 µs falls into the second.
  EXPECT_THAT(text, HasSubstr("le=\"2.5e-05\"} 0"));
}

TEST(MetricsTest, ARefusalIsCountedByItsReasonAndOneThatIsNotListedAsOther) {
  Metrics metrics;
  const MethodMetrics method = metrics.AddMethod("s.S", "M", "unary");
  using Code = absl::StatusCode;
  method.Ended(MakeError(Code::kResourceExhausted, "QUEUE_FULL", "", "full"), 1);
  method.Ended(MakeError(Code::kUnavailable, "SERVER_SHUTTING_DOWN", "", "bye"), 1);
  method.Ended(MakeError(Code::kUnavailable, "NEVER_HEARD_OF", "", "?"), 1);
  method.Ended(absl::ResourceExhaustedError("without a reason"), 1);
  // INVALID_ARGUMENT is the client's fault: it does not count as a refusal, even if its reason is
  // one that refusals have.
  method.Ended(MakeError(Code::kInvalidArgument, "QUEUE_FULL", "", "no"), 1);
  // A store that cannot be written is the server's fault, and an alias in use the client's.
  method.Ended(MakeError(Code::kFailedPrecondition, "FILE_SYSTEM_READ_ONLY", "", "ro"), 1);
  method.Ended(MakeError(Code::kFailedPrecondition, "VERSION_IN_USE", "", "no"), 1);
  const std::string text = Scrape(metrics);
  for (const char* line : {"\"queue_full\"} 1", "\"server_shutting_down\"} 1",
                           "\"file_system_read_only\"} 1", "\"other\"} 2"}) {
    EXPECT_THAT(text,
                HasSubstr(std::string("phimap_refused_total{grpc_service=\"s.S\",reason=") + line));
  }
}

// A reason that is not in kRefusalReasons is counted as "other".
TEST(MetricsTest, EveryReasonThatTheSourcesRefuseWithHasALabel) {
  namespace fs = std::filesystem;
  const std::regex refusal(
      "k(?:(?:ResourceExhausted|Unavailable),\\s*reason::k(\\w+)"
      "|FailedPrecondition,\\s*reason::k(FilePermissionDenied|FileSystemReadOnly))");
  std::set<std::string> listed;  // QUEUE_FULL as queuefull, to find kQueueFull in any case
  for (const absl::string_view reason : RefusalReasons()) {
    listed.insert(absl::AsciiStrToLower(absl::StrReplaceAll(reason, {{"_", ""}})));
  }
  std::set<std::string> found;
  for (const char* folder : {"core", "server"}) {
    for (const auto& entry : fs::recursive_directory_iterator(SourcePath(folder))) {
      if (entry.path().extension() != ".cc" && entry.path().extension() != ".h") continue;
      // `phimapd admin` runs beside the server, and serves no call.
      if (entry.path().filename() == "admin_command.cc") continue;
      std::ifstream file(entry.path());
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      for (auto match = std::sregex_iterator(text.begin(), text.end(), refusal);
           match != std::sregex_iterator(); ++match) {
        const std::string name = (*match)[1].str() + (*match)[2].str();
        const std::string reason = absl::AsciiStrToLower(name);
        found.insert(reason);
        EXPECT_TRUE(listed.contains(reason))
            << "add reason::k" << name << ", with which " << entry.path()
            << " refuses calls, to kRefusalReasons in server/observe/metrics.cc";
      }
    }
  }
  EXPECT_EQ(found.size(), listed.size());
}

TEST(MetricsTest, LimitsStandBesideWhatIsUsed) {
  Metrics metrics;
  metrics.SetLimits({.compute_threads = 2,
                     .memory_bytes = 3,
                     .live_bytes = 4,
                     .build_memory_bytes = 5,
                     .builds = 6});
  const std::string text = Scrape(metrics);
  for (const char* line :
       {"phimap_compute_threads 2\n", "phimap_request_memory_limit_bytes 3\n",
        "phimap_live_version_limit_bytes 4\n", "phimap_build_memory_limit_bytes 5\n",
        "phimap_builds_limit 6\n", "process_open_fds "}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsTest, HistogramsOfLatencyBeginAtTwentyFiveMicroseconds) {
  Metrics metrics;
  metrics.AddMethod("s.S", "M", "unary");
  const std::string text = Scrape(metrics);
  for (const char* family :
       {"phimap_transform_parse_seconds", "phimap_transform_queue_seconds",
        "phimap_transform_compute_seconds", "phimap_transform_answer_seconds"}) {
    EXPECT_THAT(text, HasSubstr(std::string(family) + "_bucket{le=\"2.5e-05\"} 0"));
  }
}

TEST(MetricsTest, APhaseOfABuildThatIsNotKnownIsNotCounted) {
  Metrics metrics;
  metrics.build().PhaseEnded("gram", 2);
  metrics.build().PhaseEnded("hostile\n", 2);
  EXPECT_EQ(metrics.build().PhaseSeconds("gram")->Collect().histogram.sample_sum, 2);
  EXPECT_EQ(metrics.build().PhaseSeconds("hostile\n"), nullptr);
}

// An alert watches the codes of the server's side, which a caller alone must not set off.
TEST(MetricsTest, ABuildAtItsCallersShareIsCountedApartFromThoseThatTheServerEnds) {
  Metrics metrics;
  metrics.build()
      .Ended(MakeError(absl::StatusCode::kResourceExhausted, "STORE_SHARE_REACHED", "", "full"))
      .Increment();
  metrics.build()
      .Ended(MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL", "", "full"))
      .Increment(2);
  metrics.build().Ended(absl::OkStatus()).Increment(3);
  const std::string text = Scrape(metrics);
  EXPECT_THAT(text, HasSubstr("phimap_builds_ended_total{code=\"ResourceExhausted\","
                              "reason=\"STORE_SHARE_REACHED\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("phimap_builds_ended_total{code=\"ResourceExhausted\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("phimap_builds_ended_total{code=\"OK\"} 3\n"));
}

TEST(MetricsTest, CodesAreNamedAsGoNamesThem) {
  EXPECT_EQ(CodeLabel(StatusCode::kOk), "OK");
  EXPECT_EQ(CodeLabel(StatusCode::kCancelled), "Canceled");
  EXPECT_EQ(CodeLabel(StatusCode::kDataLoss), "DataLoss");
  EXPECT_EQ(CodeLabel(StatusCode::kUnauthenticated), "Unauthenticated");
  EXPECT_EQ(CodeLabel(static_cast<absl::StatusCode>(99)), "Unknown");
}

}  // namespace
}  // namespace phimap::testing
