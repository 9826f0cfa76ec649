// Messages that a test writes in protobuf's text form.
#ifndef PHIMAP_TESTS_SUPPORT_TEXT_PROTO_H_
#define PHIMAP_TESTS_SUPPORT_TEXT_PROTO_H_

#include <string>

#include "core/status/check.h"
#include "google/protobuf/text_format.h"

namespace phimap::testing {

// Returns the message with `changes`: fields that the text has are set, and repeated ones grow.
// Ends the program if the text is malformed.
template <typename T>
T Merged(T message, const std::string& changes) {
  google::protobuf::TextFormat::Parser parser;
  PHIMAP_CHECK(parser.MergeFromString(changes, &message));
  return message;
}
// Returns the message of this text.
template <typename T>
T Parsed(const std::string& text) {
  return Merged(T(), text);
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_TEXT_PROTO_H_
