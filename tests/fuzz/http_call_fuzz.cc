// Checks that a request over HTTP is understood or refused, whatever its target and its body are,
// and that what was read can be printed. The input is a method of HTTP, a blank, the target, a
// newline and the body.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "google/protobuf/message.h"
#include "server/http/json.h"
#include "server/http/routes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  const absl::string_view head = input.substr(0, line);
  const absl::string_view body =
      line == absl::string_view::npos ? absl::string_view() : input.substr(line + 1);
  const size_t blank = head.find(' ');
  if (blank == absl::string_view::npos) return 0;
  const absl::StatusOr<phimap::Route> route =
      phimap::Routes::OfApi().Find(head.substr(0, blank), head.substr(blank + 1));
  if (!route.ok()) return 0;
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(route->rule->method->input_type())
          ->New());
  if (!phimap::ParseJson(body, *message).ok()) return 0;
  if (!phimap::SetFields(*route, *message).ok()) return 0;
  PHIMAP_CHECK(!phimap::PrintJson(*message).empty());
  return 0;
}
