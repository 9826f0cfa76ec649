// Tests `phimap bench` against a real server, with arguments as a user types them.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

using google::protobuf::Struct;

class BenchCommandTest : public ::testing::Test {
 protected:
  BenchCommandTest() {
    GeneratedRows rows(500, 8, 1);
    const auto built =
        server_.Connect()
            ->Build({.name = "small", .spec = "f2(landmarks=20)", .kernel = "rbf(gamma=1)"}, rows)
            .value();
  }
  std::vector<std::string> Bench(std::vector<std::string> flags) {
    std::vector<std::string> arguments = {PHIMAP_BINARY, "--server=" + server_.address(), "bench"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  Struct MustBench(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"small", "--json", "--seconds=0.5", "--warmup=0.1"});
    const ProcessResult result = RunProcess(Bench(flags));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Struct json;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &json).ok()) << result.out;
    return json;
  }

  TemporaryFolder data_;
  ServerProcess server_{data_.path()};
};

TEST_F(BenchCommandTest, AClosedLoopIsAnsweredWithoutErrors) {
  const Struct json = MustBench({"--callers=4", "--channels=2", "--rows=3",
                                 absl::StrCat("--server_pid=", server_.process().pid())});
  EXPECT_EQ(json.fields().at("version").string_value(), "small@1");
  EXPECT_EQ(json.fields().at("feature_columns").number_value(), 20);
  EXPECT_GT(json.fields().at("answered").number_value(), 0);
  EXPECT_EQ(json.fields().at("answered").number_value(), json.fields().at("calls").number_value());
  EXPECT_TRUE(json.fields().at("errors").struct_value().fields().empty());
  const auto& server = json.fields().at("server").struct_value().fields();
  EXPECT_GT(server.at("resident_bytes").number_value(), 1 << 20);
}

// The load differs between callers that share a connection and callers that have a connection each.
TEST_F(BenchCommandTest, ConnectionsAreAsManyAsWereAskedFor) {
  const auto accepted = [&] {
    const std::string page = HttpGet(server_.http_address(), "/metrics");
    const std::string name = "\nphimap_connections_accepted_total ";
    const size_t at = page.find(name);
    EXPECT_NE(at, std::string::npos) << page;
    return std::stoll(page.substr(at + name.size()));
  };
  // GetVersion, which reads the number of columns, uses a connection in addition to those of the
  // load.
  const int64_t before = accepted();
  MustBench({"--callers=5", "--connections=5"});
  const int64_t between = accepted();
  MustBench({"--callers=5"});
  EXPECT_EQ(between - before, 1 + 5);
  EXPECT_EQ(accepted() - between, 1 + 1);
}

TEST_F(BenchCommandTest, BothProtocolsAreAnsweredByTheSameVersionWithAsManyFeatures) {
  for (const char* protocol : {"native", "inference"}) {
    const Struct json =
        MustBench({"--callers=2", "--rows=3", absl::StrCat("--protocol=", protocol)});
    EXPECT_EQ(json.fields().at("protocol").string_value(), protocol);
    EXPECT_EQ(json.fields().at("version").string_value(), "small@1");
    EXPECT_EQ(json.fields().at("feature_columns").number_value(), 20);
    EXPECT_GT(json.fields().at("answered").number_value(), 0);
    EXPECT_TRUE(json.fields().at("errors").struct_value().fields().empty());
  }
}

// A version that predicts, on the same server.
TEST_F(BenchCommandTest, PredictionsAreCalledForToo) {
  EXPECT_NE(RunProcess(Bench({"small", "--protocol=predict"})).exit_code, 0);  // it has no head
  LabeledGeneratedRows rows(300, 4, 3);
  const auto trained =
      server_.Connect()->Train({.build = client::TrainedFeatures{.name = "answers",
                                                                 .spec = "f2(landmarks=20)",
                                                                 .kernel = "rbf(gamma=scale)"}},
                               rows);
  ASSERT_TRUE(trained.ok()) << trained.status();
  const ProcessResult result = RunProcess(Bench(
      {"answers", "--protocol=predict", "--json", "--rows=5", "--seconds=0.2", "--warmup=0"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"protocol\": \"predict\""));
  EXPECT_THAT(result.out, HasSubstr("\"version\": \"answers@1\""));
  EXPECT_THAT(result.out, HasSubstr("\"errors\": {}"));
}

// The machine may be busy, so the test only checks that the rate is not exceeded. 50 calls are due
// in half a second, and one more may be due at its very end.
TEST_F(BenchCommandTest, AnOpenLoopOffersItsRateAndNoMore) {
  const Struct json = MustBench({"--rate=100"});
  EXPECT_EQ(json.fields().at("mode").string_value(), "open");
  const double counted =
      json.fields().at("latency_us").struct_value().fields().at("count").number_value();
  EXPECT_GT(counted, 0);
  EXPECT_LE(counted, 51);
}

TEST_F(BenchCommandTest, PeopleGetATable) {
  const ProcessResult result = RunProcess(Bench({"small", "--seconds=0.1", "--warmup=0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("p99.9"));
  EXPECT_THAT(result.out, HasSubstr("small@1"));
}

TEST_F(BenchCommandTest, WhatCannotBeLoadedHasTheExitCodeOfTheError) {
  EXPECT_EQ(RunProcess(Bench({"nothing"})).exit_code, 3);
  EXPECT_EQ(RunProcess(Bench({"small", "--columns=9"})).exit_code, 2);
  EXPECT_EQ(RunProcess(Bench({"small", "--callers=0"})).exit_code, 2);
  const ProcessResult both = RunProcess(Bench({"small", "--callers=2", "--rate=5"}));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--callers"));
  const ProcessResult still = RunProcess(Bench({"small", "--rate=0"}));
  EXPECT_EQ(still.exit_code, 2);
  EXPECT_LT(still.err.size(), 200u) << still.err;
  // This process id is above 2^22, the largest that Linux gives.
  const ProcessResult nobody = RunProcess(Bench({"small", "--server_pid=4194305"}));
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("--server_pid: there is no process 4194305"));
  EXPECT_EQ(RunProcess(Bench({"small", "--protocol=http"})).exit_code, 2);
  const ProcessResult columns = RunProcess(Bench({"small", "--columns=9", "--protocol=inference"}));
  EXPECT_EQ(columns.exit_code, 2);
  EXPECT_THAT(columns.err, HasSubstr("--columns: expected [-1, 8]"));
  EXPECT_EQ(RunProcess({PHIMAP_BINARY, "--server=127.0.0.1:1", "bench", "small"}).exit_code, 4);
}

}  // namespace
}  // namespace phimap::e2e
