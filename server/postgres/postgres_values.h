// Converts values to and from PostgreSQL's formats.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_VALUES_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_VALUES_H_

#include <array>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/postgres/postgres_connection.h"

namespace phimap {

// The parameters of a statement for PQsendQueryParams. All are in binary format, which needs no
// quoting and sends text with its length. Refers to the values that it was created from.
class PostgresArguments {
 public:
  explicit PostgresArguments(absl::Span<const PostgresValue> values);

  int count() const { return static_cast<int>(types_.size()); }
  const unsigned int* types() const { return types_.data(); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  void Add(unsigned int type, const char* value, size_t length);

  std::vector<unsigned int> types_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  std::deque<std::array<char, 8>> integers_;  // In network order.
};

// Converts the rows of `result`, which are either all in text format or all in binary format.
// INTERNAL for a type that SqlRows cannot hold.
absl::StatusOr<SqlRows> RowsOf(const pg_result* result, bool binary);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_VALUES_H_
