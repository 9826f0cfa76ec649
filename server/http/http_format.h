// How one request over HTTP is read as the messages of a call, and how the call's answers are
// written: the part of the door that differs from one kind of request to another. A format
// translates bytes and decides nothing.
#ifndef PHIMAP_SERVER_HTTP_HTTP_FORMAT_H_
#define PHIMAP_SERVER_HTTP_HTTP_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/http/http_status.h"
#include "server/rpc/call.h"

namespace phimap {

// A body, and the headers that describe it, content-type among them.
struct HttpAnswer {
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // What follows in the body, so that it need not be copied there. Not for a part of a stream.
  std::vector<std::string> more;
  std::string status = "200";
};

// A part of a request's body.
struct HttpPiece {
  size_t bytes = 0;
  // Whether it is read as a message of the call; if not, it is dropped.
  bool is_message = true;
};

// A call with one request gets the whole body as its message. The body of a call with a stream of
// requests is cut as it arrives.
class HttpFormat : public RequestParser {
 public:
  // Bytes of a body that wait for more before they can be cut. A format must not wait with more.
  static constexpr size_t kMaxUncutBytes = (1 << 20) + (64 << 10);

  // For a stream of requests: what is at the front of `arrived`, bytes of the body that were not
  // cut yet. A message may have no bytes. nullopt if more must arrive or, after `ended`, if nothing
  // follows. Called on the loop's thread.
  virtual std::optional<HttpPiece> Cut(absl::string_view arrived, bool ended) {
    static_cast<void>(arrived);
    static_cast<void>(ended);
    return std::nullopt;
  }

  // The id of the build that the call begins, for a header of its answer; "" if it begins none.
  virtual std::string build_id() const { return ""; }

  // Bytes of memory that Write takes at most for a message of so many bytes, with the message.
  virtual int64_t AnswerCost(int64_t bytes) const = 0;
  // Writes an answer of the call. May take parts out of `answer`. May throw std::bad_alloc.
  virtual HttpAnswer Write(google::protobuf::Message& answer) = 0;
  // For a stream of answers: whether each is sent as it comes, the headers with the first; if not,
  // the last is the answer.
  virtual bool SendsEach() const { return false; }
  // The error of the call in the form of this kind of request.
  virtual HttpError Error(HttpError error) const { return error; }
  // What is sent of an error after the first answers were sent; "" breaks off the answer.
  virtual std::string LateError(const HttpError& error) const {
    static_cast<void>(error);
    return "";
  }
};

// What a request calls, and in what form.
struct HttpTarget {
  const google::protobuf::MethodDescriptor* method = nullptr;
  std::shared_ptr<HttpFormat> format;
};

// Why a request calls nothing, and the status of HTTP to say it with if that is not the one of its
// code.
struct HttpRefusal {
  absl::Status status;
  absl::string_view http_status = {};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_HTTP_FORMAT_H_
