// The runner of tables of refused requests. A row is a request and the reason and field of its
// error; it is sent over gRPC. The error must be small, and docs/api.md must list it.
#ifndef PHIMAP_TESTS_SERVER_API_REFUSALS_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_API_REFUSALS_FIXTURE_H_

#include <concepts>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "google/protobuf/text_format.h"
#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/source_dir.h"
#include "tests/support/text_proto.h"

namespace phimap::testing {

// Bytes in place of a message.
struct Raw {
  std::string bytes;
};
// A message of a request: the text form of the call's request type, the message itself, or bytes.
struct Sent {
  Sent(const char* text) : text(text) {}                                      // NOLINT
  Sent(std::string text) : text(std::move(text)) {}                           // NOLINT
  Sent(const google::protobuf::Message& m) : bytes(m.SerializeAsString()) {}  // NOLINT
  Sent(Raw raw) : bytes(std::move(raw.bytes)) {}                              // NOLINT
  std::string text;
  std::string bytes;
};
struct Request {
  Request(std::initializer_list<Sent> messages) : messages(messages) {}
  template <typename T>
  requires std::convertible_to<const T&, Sent> Request(const T& message)
      : messages({Sent(message)}) {}  // NOLINT
  std::vector<Sent> messages;
};

struct Refusal {
  Request request;
  std::string reason;
  std::string field = "";
  std::string says = "";   // parts of the message, separated by " … "
  std::string facts = "";  // some of the metadata, as "name=value; name=value"
};

inline std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) absl::StrAppend(&all, text);
  return all;
}

// Dense rows as float64 numbers.
inline v1::Examples Numbers(int rows, int columns, const std::function<double(int, int)>& at) {
  v1::Examples examples;
  examples.mutable_dense()->set_rows(rows);
  examples.mutable_dense()->set_columns(columns);
  v1::Numbers& numbers = *examples.mutable_dense()->mutable_numbers();
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) numbers.add_values(at(i, j));
  }
  return examples;
}

class RefusalsFixture : public ServerFixture {
 protected:
  using Metadata = std::multimap<std::string, std::string>;

  // Sends each request by the call of this name, or of this path, and expects its error.
  void Refuse(const std::string& call, Code code, const std::vector<Refusal>& refusals,
              const Metadata& metadata = {}) {
    for (const Refusal& refusal : refusals) {
      ExpectRefused(call, code, refusal, Call(call, refusal.request, metadata));
    }
  }
  grpc::Status Call(const std::string& call, const Request& request,
                    const Metadata& metadata = {}) {
    const google::protobuf::MethodDescriptor* const method = Method(call);
    std::vector<std::string> messages;
    for (const Sent& sent : request.messages) {
      messages.push_back(sent.text.empty() ? sent.bytes : BytesOf(*method, sent.text));
    }
    const std::string path =
        method == nullptr ? call
                          : absl::StrCat("/", method->service()->full_name(), "/", method->name());
    return CallRaw(channel_, path, messages, metadata).status;
  }
  // Expects that a call of this name ended with the error of `refusal`.
  static void ExpectRefused(const std::string& call, Code code, const Refusal& refusal,
                            const grpc::Status& status) {
    const std::vector<Sent>& sent = refusal.request.messages;
    SCOPED_TRACE(absl::StrCat(call, " expects ", refusal.reason, " of ", refusal.field, "; ",
                              sent.empty() ? "nothing was sent" : TextOf(call, sent.back())));
    EXPECT_THAT(status, IsError(code, refusal.reason, refusal.field));
    for (const absl::string_view part : absl::StrSplit(refusal.says, " … ")) {
      EXPECT_THAT(status.error_message(), HasSubstr(std::string(part)));
    }
    ExpectMetadata(status, refusal.facts);
    // An error quotes little of a request, but it repeats a parameter that there is not.
    EXPECT_LE(status.error_message().size() + status.error_details().size(),
              call == "Build" ? 8192 : 1300);
    const std::string like = call == "TransformStream" ? "Transform"
                             : call == "EstimateBuild" ? "Build"
                                                       : call;
    const std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
    const std::string general[] = {call, like, "Any call", "Names and references",
                                   "Loading a version"};
    for (const std::string& section : general) {
      const auto claim = Claims().find({section, refusal.reason, name});
      if (claim == Claims().end()) continue;
      came_.insert(claim->first);
      const bool delayed = FactsOf(status).retry_ms.has_value();
      EXPECT_TRUE(!delayed || absl::StrContains(claim->second, "delay")) << claim->second;
      EXPECT_TRUE(delayed || !absl::StrContains(claim->second, "again after the delay"));
      return;
    }
    ADD_FAILURE() << "docs/api.md does not list this error";
  }
  // Expects that the tests of this file caused all errors that docs/api.md lists, in the sections
  // of the inference protocol or in all others, but for reasons that need more than a request.
  // These are in `elsewhere`, as "REASON", or as "Section/REASON" if other sections have it too.
  static void ExpectAllCame(const std::string& elsewhere, bool inference) {
    const auto* const all = ::testing::UnitTest::GetInstance();
    for (int i = 0; i < all->total_test_suite_count(); ++i) {
      for (int j = 0; j < all->GetTestSuite(i)->total_test_count(); ++j) {
        const ::testing::TestInfo* const test = all->GetTestSuite(i)->GetTestInfo(j);
        if (std::strcmp(test->file(), all->current_test_info()->file()) == 0 &&
            !test->should_run()) {
          GTEST_SKIP() << "a filter leaves out tests that cause errors";
        }
      }
    }
    const std::set<std::string> others = absl::StrSplit(elsewhere, ' ');
    for (const auto& [claim, when] : Claims()) {
      const auto& [section, reason, code] = claim;
      if (inference != (absl::StartsWith(section, "Model") || section == "RepositoryIndex"))
        continue;
      const bool other = others.contains(reason) ||
                         others.contains(absl::StrReplaceAll(section, {{" ", "_"}}) + "/" + reason);
      EXPECT_EQ(came_.contains(claim), !other) << section << " " << reason << " " << code;
    }
  }

  // A build of its own id from `rows`, of "letter" as it is built but for `changes`.
  void MustBuildOf(const std::string& changes, const v1::Examples& rows, int count) {
    const std::string id = absl::StrFormat("00000000-0000-4000-8000-%012d", next_id_++);
    const v1::BuildSpec spec = Merged(Spec("letter", "f2(landmarks=5)", id), changes);
    ASSERT_THAT(Build(spec, rows, count), IsOk());
  }

 private:
  // Rows of the tables of errors in docs/api.md: section, reason and code; and when each comes.
  using Claim = std::tuple<std::string, std::string, std::string>;

  static const std::map<Claim, std::string>& Claims() {
    static std::map<Claim, std::string> claims;
    if (!claims.empty()) return claims;
    std::string section, line;
    for (std::ifstream page(SourcePath("docs/api.md")); std::getline(page, line);) {
      const std::vector<std::string> cells = absl::StrSplit(line, " | ");
      if (absl::StartsWith(line, "##")) section = line.substr(line.find(' ') + 1);
      if (cells.size() < 3 || cells[0].find_first_not_of(
                                  "| ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != std::string::npos) {
        continue;
      }
      claims[{section, cells[0].substr(2), cells[1]}] = cells[2];
    }
    PHIMAP_CHECK(claims.size() > 250);
    return claims;
  }

  static const google::protobuf::MethodDescriptor* Method(const std::string& call) {
    for (const char* service :
         {"phimap.v1.MappingService", "phimap.v1.TransformService", "phimap.v1.LearningService",
          "phimap.v1.PredictService", "inference.GRPCInferenceService"}) {
      const auto* const found =
          google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
      if (found == nullptr) continue;  // the program has no such messages
      if (const auto* const method = found->FindMethodByName(call)) return method;
    }
    return nullptr;
  }
  using AnyMessage = std::unique_ptr<google::protobuf::Message>;
  static AnyMessage NewRequest(const google::protobuf::MethodDescriptor& method) {
    return AnyMessage(google::protobuf::MessageFactory::generated_factory()
                          ->GetPrototype(method.input_type())
                          ->New());
  }
  static std::string BytesOf(const google::protobuf::MethodDescriptor& method,
                             const std::string& text) {
    const AnyMessage message = NewRequest(method);
    google::protobuf::TextFormat::Parser parser;
    PHIMAP_CHECK(parser.MergeFromString(text, message.get()));
    return message->SerializeAsString();
  }
  // What a failure shows of a message.
  static std::string TextOf(const std::string& call, const Sent& sent) {
    if (sent.bytes.empty()) return sent.text.substr(0, 1000);
    const google::protobuf::MethodDescriptor* const method = Method(call);
    const AnyMessage message = method == nullptr ? nullptr : NewRequest(*method);
    if (message == nullptr || !message->ParseFromString(sent.bytes)) return "bytes";
    return message->ShortDebugString().substr(0, 1000);
  }

  static inline std::set<Claim> came_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_API_REFUSALS_FIXTURE_H_
