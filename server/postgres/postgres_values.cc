#include "server/postgres/postgres_values.h"

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/postgres/libpq.h"

namespace phimap {
namespace {

// Ids of types, which PostgreSQL never changes (catalog/pg_type_d.h).
constexpr Oid kUnknown = 0;
constexpr Oid kBool = 16;
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr Oid kNumeric = 1700;  // The type of a sum of bigint values.

bool IsInteger(Oid type) { return type == kInt8 || type == kInt4 || type == kInt2; }

absl::Status BadColumn(Oid type) {
  return MakeError(absl::StatusCode::kInternal, "DATABASE_FAILED", "",
                   absl::StrCat("a column has PostgreSQL's type ", type,
                                ", which is neither an integer nor text; please report this"));
}

int64_t FromNetworkOrder(absl::string_view bytes) {
  uint64_t number = (static_cast<unsigned char>(bytes[0]) & 0x80) != 0 ? ~uint64_t{0} : 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<int64_t>(number);
}

absl::StatusOr<SqlRows::Cell> CellOfText(Oid type, absl::string_view text) {
  if (type == kBool) return SqlRows::Cell(int64_t{text == "t"});
  if (!IsInteger(type) && type != kNumeric) return SqlRows::Cell(std::string(text));
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return BadColumn(type);
  return SqlRows::Cell(number);
}

absl::StatusOr<SqlRows::Cell> CellOfBinary(Oid type, absl::string_view bytes) {
  if (IsInteger(type) || type == kBool) return SqlRows::Cell(FromNetworkOrder(bytes));
  if (type == kText || type == kBytea) return SqlRows::Cell(std::string(bytes));
  return BadColumn(type);
}

}  // namespace

PostgresArguments::PostgresArguments(absl::Span<const PostgresValue> values) {
  for (const PostgresValue& value : values) {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      std::array<char, 8>& bytes = integers_.emplace_back();
      for (int i = 0; i < 8; ++i) {
        bytes[i] = static_cast<char>(static_cast<uint64_t>(*integer) >> (56 - 8 * i));
      }
      Add(kInt8, bytes.data(), bytes.size());
    } else if (const auto* text = std::get_if<absl::string_view>(&value)) {
      // A null pointer would mean NULL, which differs from an empty text.
      Add(kText, text->data() == nullptr ? "" : text->data(), text->size());
    } else if (const auto* bytes = std::get_if<PostgresBytes>(&value)) {
      Add(kBytea, bytes->bytes.data() == nullptr ? "" : bytes->bytes.data(), bytes->bytes.size());
    } else {
      // The server infers the type from the place of the parameter in the statement.
      Add(kUnknown, nullptr, 0);
    }
  }
}

void PostgresArguments::Add(unsigned int type, const char* value, size_t length) {
  constexpr size_t kLongest = size_t{1} << 30;  // PostgreSQL's own limit of a value.
  PHIMAP_CHECK(length < kLongest);
  types_.push_back(type);
  values_.push_back(value);
  lengths_.push_back(static_cast<int>(length));
  formats_.push_back(1);
}

absl::StatusOr<SqlRows> RowsOf(const pg_result* result, bool binary) {
  SqlRows rows;
  const int columns = libpq().PQnfields(result);
  for (int row = 0; row < libpq().PQntuples(result); ++row) {
    std::vector<SqlRows::Cell> cells(static_cast<size_t>(columns));
    for (int column = 0; column < columns; ++column) {
      if (libpq().PQgetisnull(result, row, column)) continue;
      const absl::string_view value(libpq().PQgetvalue(result, row, column),
                                    static_cast<size_t>(libpq().PQgetlength(result, row, column)));
      const Oid type = libpq().PQftype(result, column);
      PHIMAP_ASSIGN_OR_RETURN(cells[static_cast<size_t>(column)],
                              binary ? CellOfBinary(type, value) : CellOfText(type, value));
    }
    rows.Add(std::move(cells));
  }
  return rows;
}

}  // namespace phimap
