// Checks that a request over HTTP is understood or refused, whatever its target and its body are,
// in whatever pieces the body arrives, and that what was read can be printed. The input is a method
// of HTTP, a blank, the target and, if it is not application/json, a blank and the type of the
// body; a newline; and the body.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "google/protobuf/message.h"
#include "server/http/api_formats.h"
#include "server/http/json.h"
#include "server/rpc/transport/stream.h"

namespace {

using google::protobuf::Message;

std::unique_ptr<Message> NewRequest(const phimap::HttpTarget& target) {
  return std::unique_ptr<Message>(google::protobuf::MessageFactory::generated_factory()
                                      ->GetPrototype(target.method->input_type())
                                      ->New());
}

// Reads the body as the door does, in pieces whose sizes depend on its bytes.
void ReadStream(phimap::HttpTarget& target, absl::string_view body) {
  std::string uncut;
  size_t messages = 0;
  while (true) {
    const size_t more =
        body.empty() ? 0 : std::min<size_t>(body.size(), 1 + static_cast<uint8_t>(body[0]));
    uncut.append(body.data(), more);
    body.remove_prefix(more);
    while (const std::optional<phimap::HttpPiece> piece = target.format->Cut(uncut, body.empty())) {
      PHIMAP_CHECK(piece->bytes <= uncut.size());
      // Each piece takes bytes or is one of the three messages without any.
      PHIMAP_CHECK(piece->bytes > 0 || ++messages <= 3);
      const std::string text = uncut.substr(0, piece->bytes);
      uncut.erase(0, piece->bytes);
      if (!piece->is_message) continue;
      const std::unique_ptr<Message> message = NewRequest(target);
      PHIMAP_CHECK(target.format->Cost(text) > 0);
      if (!target.format->Parse(text, *message).ok()) return;
    }
    PHIMAP_CHECK(uncut.size() <= phimap::HttpFormat::kMaxUncutBytes);
    if (body.empty()) break;
  }
  PHIMAP_CHECK(uncut.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  const std::vector<absl::string_view> parts =
      absl::StrSplit(input.substr(0, line), absl::MaxSplits(' ', 2));
  const absl::string_view body =
      line == absl::string_view::npos ? absl::string_view() : input.substr(line + 1);
  if (parts.size() < 2) return 0;
  phimap::RequestHead head;
  head.Add(":method", parts[0]);
  head.Add(":path", parts[1]);
  head.Add("content-type", parts.size() == 3 ? parts[2] : "application/json");
  phimap::HttpTarget target;
  if (phimap::FindApiTarget(head, target).has_value()) return 0;
  if (target.method->client_streaming()) {
    ReadStream(target, body);
    return 0;
  }
  const std::unique_ptr<Message> message = NewRequest(target);
  if (!target.format->Parse(body, *message).ok()) return 0;
  PHIMAP_CHECK(!phimap::PrintJson(*message).empty());
  return 0;
}
