#include "server/inference/inference_absent.h"

#include <string>

#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

using ::testing::HasSubstr;

void ExpectError(const absl::Status& status, absl::StatusCode code, const char* reason,
                 const char* words) {
  EXPECT_EQ(status.code(), code) << status;
  ASSERT_TRUE(DetailOf(status).has_value());
  EXPECT_EQ(DetailOf(status)->reason, reason);
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

void ExpectNotOffered(const char* method, const char* words) {
  ExpectError(AbsentCall(method), absl::StatusCode::kUnimplemented, "METHOD_NOT_OFFERED", words);
}

void ExpectCannotBeSet(const absl::Status& status, const char* words) {
  ExpectError(status, absl::StatusCode::kInvalidArgument, "PARAMETER_NOT_SUPPORTED", words);
  EXPECT_EQ(DetailOf(status)->field, "settings");
}

TEST(InferenceAbsentTest, EachCallSaysWhatToDoInItsPlace) {
  ExpectNotOffered("RepositoryModelLoad", "ModelReady");
  ExpectNotOffered("RepositoryModelUnload", "DeleteVersion");
  ExpectNotOffered("SystemSharedMemoryRegister", "raw_input_contents");
  ExpectNotOffered("CudaSharedMemoryRegister", "raw_input_contents");
}

TEST(InferenceAbsentTest, NothingIsTracedAndThatCannotBeSet) {
  inference::TraceSettingRequest request;
  request.set_model_name("letters");
  const auto response = TraceSettingOf(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->settings().at("trace_level").value_size(), 1);
  EXPECT_EQ(response->settings().at("trace_level").value(0), "OFF");
  (*request.mutable_settings())["trace_level"].add_value("TIMESTAMPS");
  ExpectCannotBeSet(TraceSettingOf(request).status(), "/metrics");
}

TEST(InferenceAbsentTest, LogSettingsAreThoseOfTheLevel) {
  const struct {
    LogLevel level;
    bool error, warning, info;
    uint32_t verbose;
  } cases[] = {{LogLevel::kDebug, true, true, true, 1},
               {LogLevel::kInfo, true, true, true, 0},
               {LogLevel::kWarning, true, true, false, 0},
               {LogLevel::kError, true, false, false, 0},
               {LogLevel::kOff, false, false, false, 0}};
  for (const auto& c : cases) {
    SCOPED_TRACE(static_cast<int>(c.level));
    const auto response = LogSettingsOf({}, c.level);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->settings().at("log_error").bool_param(), c.error);
    EXPECT_EQ(response->settings().at("log_warning").bool_param(), c.warning);
    EXPECT_EQ(response->settings().at("log_info").bool_param(), c.info);
    EXPECT_EQ(response->settings().at("log_verbose_level").uint32_param(), c.verbose);
  }
}

TEST(InferenceAbsentTest, LogSettingsCannotBeSet) {
  inference::LogSettingsRequest request;
  (*request.mutable_settings())["log_verbose_level"].set_uint32_param(1);
  ExpectCannotBeSet(LogSettingsOf(request, LogLevel::kInfo).status(), "--log_level");
}

}  // namespace
}  // namespace phimap
