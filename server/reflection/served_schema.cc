#include "server/reflection/served_schema.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "google/protobuf/descriptor.pb.h"

namespace phimap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

absl::Status NotServed(const char* what, const std::string& name) {
  return MakeError(absl::StatusCode::kNotFound, "SCHEMA_NOT_FOUND", "",
                   absl::StrCat("this server's services have no ", what, " ", Quoted(name)));
}

}  // namespace

ServedSchema::ServedSchema(const std::vector<std::string>& services) : services_(services) {
  for (const std::string& name : services_) {
    const auto* const service = DescriptorPool::generated_pool()->FindServiceByName(name);
    PHIMAP_CHECK(service != nullptr);
    Add(*service->file());
  }
}

void ServedSchema::Add(const FileDescriptor& file) {
  if (files_.count(file.name()) > 0) return;
  for (int i = 0; i < file.dependency_count(); ++i) Add(*file.dependency(i));
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  PHIMAP_CHECK(pool_.BuildFile(proto) != nullptr);
  files_.emplace(file.name(), proto.SerializeAsString());
}

ServedSchema::Files ServedSchema::WithImports(const FileDescriptor& file) const {
  std::vector<const FileDescriptor*> order = {&file};
  std::set<const FileDescriptor*> seen = {&file};
  Files files;
  for (size_t i = 0; i < order.size(); ++i) {
    const FileDescriptor& next = *order[i];
    files.push_back(files_.at(next.name()));
    for (int k = 0; k < next.dependency_count(); ++k) {
      if (seen.insert(next.dependency(k)).second) order.push_back(next.dependency(k));
    }
  }
  return files;
}

absl::StatusOr<ServedSchema::Files> ServedSchema::FileNamed(const std::string& name) const {
  const FileDescriptor* const file = pool_.FindFileByName(name);
  if (file == nullptr) return NotServed("file", name);
  return WithImports(*file);
}

absl::StatusOr<ServedSchema::Files> ServedSchema::FileWithSymbol(const std::string& symbol) const {
  const FileDescriptor* const file = pool_.FindFileContainingSymbol(symbol);
  if (file == nullptr) return NotServed("symbol", symbol);
  return WithImports(*file);
}

absl::StatusOr<ServedSchema::Files> ServedSchema::FileWithExtension(const std::string& type,
                                                                    int number) const {
  const Descriptor* const message = pool_.FindMessageTypeByName(type);
  if (message == nullptr) return NotServed("message", type);
  const FieldDescriptor* const extension = pool_.FindExtensionByNumber(message, number);
  if (extension == nullptr) return NotServed("extension", absl::StrCat(type, " ", number));
  return WithImports(*extension->file());
}

absl::StatusOr<std::vector<int>> ServedSchema::ExtensionsOf(const std::string& type) const {
  const Descriptor* const message = pool_.FindMessageTypeByName(type);
  if (message == nullptr) return NotServed("message", type);
  std::vector<const FieldDescriptor*> extensions;
  pool_.FindAllExtensions(message, &extensions);
  std::vector<int> numbers;
  for (const FieldDescriptor* const extension : extensions) numbers.push_back(extension->number());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace phimap
