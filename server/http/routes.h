// Which method of the API a request over HTTP calls: the rules of rules.json, which has the form of
// google.api.Service, so that other tools can read it. (The protos carry no annotations: those are
// an extension that a process may register once only, and some clients bring their own.)
#ifndef PHIMAP_SERVER_HTTP_ROUTES_H_
#define PHIMAP_SERVER_HTTP_ROUTES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace phimap {

// A path of the rules: "/v1/mappings/{name}/versions" or "/v1/mappings/{reference}:transform".
struct RouteRule {
  // "GET", "POST" or "DELETE".
  std::string verb;
  // Segments of the path: literals, "*" for any text.
  std::vector<std::string> segments;
  // What follows the last colon of a path; empty if there is none.
  std::string action;
  // The fields that segments give, in the order of the path: the field's path, and its first and
  // last segment. Two segments around "versions" give a reference: letters/versions/3 is letters@3.
  struct Field {
    std::string path;
    size_t first = 0;
    size_t last = 0;
  };
  std::vector<Field> fields;
  // Whether a body comes with the request. If it is JSON, the other fields are in it; if not, they
  // come in the query.
  bool has_body = false;
  const google::protobuf::MethodDescriptor* method = nullptr;
};

// Decodes %XX. Returns false for a wrong encoding, for a byte 0, which no name has, and for what is
// no UTF-8.
bool PercentDecode(absl::string_view text, std::string& decoded);

// What a request calls.
struct Route {
  const RouteRule* rule = nullptr;
  // Fields of the request's message, by their paths, that the path gives.
  std::vector<std::pair<std::string, std::string>> fields;
  // Names and values of the query.
  std::vector<std::pair<std::string, std::string>> query;
};

class Routes {
 public:
  // The rules of the API. They are read at the first call.
  static const Routes& OfApi();

  const std::vector<RouteRule>& rules() const { return rules_; }

  // Finds what a request with this method of HTTP and this target, "/v1/mappings/a?page_size=3",
  // calls. NOT_FOUND (METHOD_UNKNOWN) if nothing is served at the path; UNIMPLEMENTED
  // (METHOD_UNKNOWN) if it is served for other methods of HTTP, which the message names;
  // INVALID_ARGUMENT (REQUEST_MALFORMED) if the target is wrongly encoded.
  absl::StatusOr<Route> Find(absl::string_view verb, absl::string_view target) const;

 private:
  std::vector<RouteRule> rules_;
};

// Sets fields, each by its path and its value as a text, in `message`. INVALID_ARGUMENT if a field
// does not exist, its value is not of its type, or the message already has another one.
absl::Status SetFields(const std::vector<std::pair<std::string, std::string>>& fields,
                       google::protobuf::Message& message);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_ROUTES_H_
