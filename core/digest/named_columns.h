// The names of a version's columns. Calls compare the names by a single hash, however long they
// are.
#ifndef PHIMAP_CORE_DIGEST_NAMED_COLUMNS_H_
#define PHIMAP_CORE_DIGEST_NAMED_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phimap {

// Returns a hash of the names in this order: the first 8 bytes, little-endian, of the SHA-256 of
// all names, each as its length in bytes (32 bits, little-endian) followed by its bytes. Returns 1
// if those 8 bytes are 0, and 0 if there are no names.
uint64_t ColumnNamesHash(const std::vector<std::string>& names);

// Lists names for people: quoted, in order, with the number of omitted names if there are more than
// `most`.
std::string ShownColumnNames(const std::vector<std::string>& names, size_t most = 40);

// Immutable.
class NamedColumns {
 public:
  NamedColumns() = default;
  explicit NamedColumns(std::vector<std::string> names)
      : names_(std::move(names)), hash_(ColumnNamesHash(names_)) {}

  // Empty if the columns have no names.
  const std::vector<std::string>& names() const { return names_; }
  uint64_t hash() const { return hash_; }
  int64_t memory_bytes() const;

 private:
  std::vector<std::string> names_;
  uint64_t hash_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_DIGEST_NAMED_COLUMNS_H_
