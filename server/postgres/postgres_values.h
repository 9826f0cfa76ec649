// Values on their way to PostgreSQL and back.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_VALUES_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_VALUES_H_

#include <array>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/postgres/postgres_connection.h"

namespace phimap {

// The parameters of a statement as PQsendQueryParams takes them, all in binary, which needs no
// quoting and sends text with its length. Refers to the values that it was made from.
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

// The rows of `result`, which came in text or all in binary. INTERNAL: a type that has no SqlRows.
absl::StatusOr<SqlRows> RowsOf(const pg_result* result, bool binary);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_VALUES_H_
