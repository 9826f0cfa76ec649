#include "server/inference/inference_timeout.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using inference::InferParameter;

constexpr char kTimeout[] = "timeout";
constexpr char kField[] = "parameters[timeout]";

const char* TypeName(const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return "bool";
    case InferParameter::kStringParam:
      return "string";
    case InferParameter::kDoubleParam:
      return "double";
    case InferParameter::kInt64Param:
      return "int64";
    case InferParameter::kUint64Param:
      return "uint64";
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return "nothing";
}

absl::StatusOr<int64_t> MicrosecondsOf(const InferParameter& parameter) {
  constexpr auto kLongest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (parameter.has_uint64_param()) {
    return static_cast<int64_t>(std::min(parameter.uint64_param(), kLongest));
  }
  if (parameter.has_int64_param()) return parameter.int64_param();
  return MakeError(
      absl::StatusCode::kInvalidArgument, "PARAMETER_TYPE_MISMATCH", kField,
      absl::StrCat("expected microseconds as int64 or uint64, got ", TypeName(parameter)),
      {{"expected", "int64 or uint64"}, {"actual", TypeName(parameter)}});
}

}  // namespace

absl::StatusOr<absl::Duration> TimeoutOf(const InferParameters& parameters) {
  const auto timeout = parameters.find(kTimeout);
  if (timeout == parameters.end()) return absl::InfiniteDuration();
  PHIMAP_ASSIGN_OR_RETURN(const int64_t microseconds, MicrosecondsOf(timeout->second));
  if (microseconds < 0) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", kField,
        absl::StrCat("expected microseconds, at least 0 (which means no timeout), got ",
                     microseconds),
        {{"actual", absl::StrCat(microseconds)}});
  }
  return microseconds == 0 ? absl::InfiniteDuration() : absl::Microseconds(microseconds);
}

}  // namespace phimap
