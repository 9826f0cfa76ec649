// The proto files of the services that a server has.
#ifndef PHIMAP_SERVER_REFLECTION_SERVED_SCHEMA_H_
#define PHIMAP_SERVER_REFLECTION_SERVED_SCHEMA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace phimap {

// The schema has its own descriptor pool, for two reasons. protobuf's pool of generated files
// remembers every unknown name that it was asked for, so a stranger could fill the memory with
// names. And files that are linked but not served should not be visible. Immutable, hence
// thread-safe.
class ServedSchema {
 public:
  // A file, followed by its direct and indirect imports: serialized FileDescriptorProtos.
  using Files = std::vector<std::string>;

  // `services` are full names. REQUIRES: each of them has generated code.
  explicit ServedSchema(const std::vector<std::string>& services);

  const std::vector<std::string>& services() const { return services_; }
  // All of these return NOT_FOUND for a name that no file has.
  absl::StatusOr<Files> FileNamed(const std::string& name) const;
  absl::StatusOr<Files> FileWithSymbol(const std::string& symbol) const;
  absl::StatusOr<Files> FileWithExtension(const std::string& type, int number) const;
  // Returns the numbers in ascending order.
  absl::StatusOr<std::vector<int>> ExtensionsOf(const std::string& type) const;

 private:
  // Adds the file and its imports.
  void Add(const google::protobuf::FileDescriptor& file);
  Files WithImports(const google::protobuf::FileDescriptor& file) const;

  const std::vector<std::string> services_;
  google::protobuf::DescriptorPool pool_;
  // Keyed by name.
  std::map<std::string, std::string> files_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REFLECTION_SERVED_SCHEMA_H_
