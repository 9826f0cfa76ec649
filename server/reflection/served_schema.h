// The proto files of the services that a server has.
#ifndef PHIMAP_SERVER_REFLECTION_SERVED_SCHEMA_H_
#define PHIMAP_SERVER_REFLECTION_SERVED_SCHEMA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace phimap {

// A pool of its own, for two reasons: protobuf's pool of generated files remembers every name that
// it was asked for in vain, so that a stranger could fill the memory with names; and what is linked
// but not served is nobody's business.
// Immutable, hence thread-safe.
class ServedSchema {
 public:
  // A file, then those that it imports, directly or not: serialized FileDescriptorProtos.
  using Files = std::vector<std::string>;

  // Full names. REQUIRES: generated code for each of them.
  explicit ServedSchema(const std::vector<std::string>& services);

  const std::vector<std::string>& services() const { return services_; }
  // All of these: NOT_FOUND for what is in none of the files.
  absl::StatusOr<Files> FileNamed(const std::string& name) const;
  absl::StatusOr<Files> FileWithSymbol(const std::string& symbol) const;
  absl::StatusOr<Files> FileWithExtension(const std::string& type, int number) const;
  // Rising.
  absl::StatusOr<std::vector<int>> ExtensionsOf(const std::string& type) const;

 private:
  // With what it imports.
  void Add(const google::protobuf::FileDescriptor& file);
  Files WithImports(const google::protobuf::FileDescriptor& file) const;

  const std::vector<std::string> services_;
  google::protobuf::DescriptorPool pool_;
  // By name.
  std::map<std::string, std::string> files_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REFLECTION_SERVED_SCHEMA_H_
