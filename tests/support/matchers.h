// The words of tests: gmock's matchers by their bare names, and matchers of errors.
#ifndef PHIMAP_TESTS_SUPPORT_MATCHERS_H_
#define PHIMAP_TESTS_SUPPORT_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "core/status/error.h"
#include "gmock/gmock.h"

// In phimap and not in phimap::testing, because the tests of some folders have a namespace of their
// own inside phimap.
namespace phimap {

using absl::StatusCode;

using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Optional;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

}  // namespace phimap

namespace phimap::testing {

// The reason and the field of an error's detail; "" if the status has no detail.
inline std::string ReasonOf(const absl::Status& status) {
  return DetailOf(status).value_or(ErrorDetail()).reason;
}
inline std::string FieldOf(const absl::Status& status) {
  return DetailOf(status).value_or(ErrorDetail()).field;
}

// Matches an error by its code, the reason and the field of its detail, and its message.
using TextMatcher = ::testing::Matcher<std::string>;
inline ::testing::Matcher<absl::Status> IsError(absl::StatusCode code,
                                                const TextMatcher& reason = _,
                                                const TextMatcher& field = _,
                                                const TextMatcher& message = _) {
  const auto text = [](const absl::Status& status) { return std::string(status.message()); };
  return AllOf(::testing::Property("code", &absl::Status::code, code),
               ::testing::ResultOf("the reason", ReasonOf, reason),
               ::testing::ResultOf("the field", FieldOf, field),
               ::testing::ResultOf("the message", text, message));
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_MATCHERS_H_
