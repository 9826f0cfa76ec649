// The messages of the API as schemas of JSON: what json.cc reads and prints, and http_status.cc
// prints of an error, as the components of a document of OpenAPI 3.1.
#ifndef PHIMAP_SERVER_HTTP_SCHEMAS_H_
#define PHIMAP_SERVER_HTTP_SCHEMAS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace phimap {

// Members of an object: names, and values that are JSON.
using JsonMembers = std::vector<std::pair<std::string, std::string>>;
std::string JsonObject(const JsonMembers& members);
std::string JsonArray(const std::vector<std::string>& values);
std::string JsonText(absl::string_view text);

// The comment in front of a method, message, field or value, without the line breaks within its
// paragraphs. Empty if there is none, or if the descriptor's pool has no comments.
template <typename Descriptor>
std::string CommentOf(const Descriptor& descriptor);

// A comment of a field says first whether a request must have it.
bool IsRequired(const google::protobuf::FieldDescriptor& field);

// Collects schemas. Each has a name, and others refer to it.
class Schemas {
 public:
  Schemas();

  // Return a reference to the schema, {"$ref": …}. Answers are added before requests, because the
  // request's form of a message that answers have too gets another name.
  std::string AnswerRef(const google::protobuf::Descriptor& message);
  // `given`: the fields that the path of the request gives.
  std::string RequestRef(const google::protobuf::Descriptor& message,
                         const std::set<std::string>& given);
  // An error with its details, a google.rpc.Status; `pool` has the messages of the details.
  std::string ErrorRef(const google::protobuf::DescriptorPool& pool);

  // Returns the schema of a field that comes in a query.
  std::string QueryValue(const google::protobuf::FieldDescriptor& field);

  // All schemas by their names.
  std::string Components() const;

 private:
  // How a message is written. kDetail: with the names in camel case.
  enum class Form { kRead, kPrinted, kDetail };

  std::string MessageRef(const google::protobuf::Descriptor& message, Form form);
  std::string EnumRef(const google::protobuf::EnumDescriptor& type);
  JsonMembers Properties(const google::protobuf::Descriptor& message, Form form);
  std::string Value(const google::protobuf::FieldDescriptor& field, Form form);
  std::string Property(const google::protobuf::FieldDescriptor& field, Form form);

  std::map<std::string, std::string> schemas_;
  std::set<std::string> printed_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_SCHEMAS_H_
