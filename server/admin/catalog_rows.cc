#include "server/admin/catalog_rows.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::StatusOr<SqlRows> ReadTable(SqlSession& session, const CopiedTable& table) {
  return session.Run(absl::StrCat("SELECT ", absl::StrJoin(table.columns, ", "), " FROM ",
                                  table.name, " ORDER BY ", table.columns[0], ", ",
                                  table.columns[1]));
}

SqlValue ValueIn(const SqlRows& rows, size_t row, size_t column) {
  if (rows.IsNull(row, column)) return std::monostate();
  if (rows.IsInt(row, column)) return rows.Int(row, column);
  return absl::string_view(rows.Text(row, column));
}

absl::Status WriteTable(SqlSession& session, const CopiedTable& table, const SqlRows& rows) {
  std::vector<std::string> places;
  for (size_t i = 1; i <= table.columns.size(); ++i) places.push_back(absl::StrCat("$", i));
  const std::string statement =
      absl::StrCat("INSERT INTO ", table.name, " (", absl::StrJoin(table.columns, ", "),
                   ") VALUES (", absl::StrJoin(places, ", "), ")");
  std::vector<SqlValue> values(table.columns.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < values.size(); ++column) {
      values[column] = ValueIn(rows, row, column);
    }
    PHIMAP_RETURN_IF_ERROR(session.Run(statement, values).status());
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<CopiedTable>& CopiedTables() {
  static const auto* const tables = new std::vector<CopiedTable>{
      {"mappings", {"name", "next_version", "create_time_us", "deleted", "revision"}},
      {"versions",
       {"mapping", "number", "digest", "artifact_size_bytes", "create_time_us", "input_columns",
        "output_columns", "serving_type", "mapping_text", "kernel_text", "imported", "ttl_us",
        "expire_time_us"}},
      {"aliases", {"mapping", "alias", "version", "etag", "previous_version", "move_time_us"}},
      {"builds",
       {"mapping", "build_id", "spec_digest", "rows_received", "end_time_us", "version",
        "error_code", "error_message", "error_detail"}},
      {"operations", {"operation_id", "request", "outcome", "end_time_us"}}};
  return *tables;
}

absl::StatusOr<CatalogRows> ReadCatalogRows(SqlSession& session) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows store, session.Run("SELECT store_id, revision FROM store"));
  if (store.size() != 1) {
    return MakeError(absl::StatusCode::kDataLoss, "DATABASE_DAMAGED", "store",
                     "the table store lacks its row; restore the database from a backup");
  }
  CatalogRows rows{store.Text(0, 0), store.Int(0, 1), {}};
  for (const CopiedTable& table : CopiedTables()) {
    PHIMAP_ASSIGN_OR_RETURN(SqlRows read, ReadTable(session, table));
    rows.tables.push_back(std::move(read));
  }
  return rows;
}

absl::Status WriteCatalogRows(SqlSession& session, const CatalogRows& rows) {
  PHIMAP_RETURN_IF_ERROR(session
                             .Run("UPDATE store SET store_id = $1, revision = $2",
                                  {absl::string_view(rows.store_id), rows.revision})
                             .status());
  for (size_t i = 0; i < rows.tables.size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(WriteTable(session, CopiedTables()[i], rows.tables[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IsEmptyCatalog(SqlSession& session) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows found,
      session.Run("SELECT 1 FROM store WHERE revision > 0 OR EXISTS (SELECT 1 FROM mappings) "
                  "OR EXISTS (SELECT 1 FROM builds)"));
  return found.empty();
}

absl::StatusOr<std::map<std::string, int64_t>> NamedArtifacts(SqlSession& session) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session.Run("SELECT DISTINCT digest, artifact_size_bytes FROM versions"));
  std::map<std::string, int64_t> artifacts;
  for (size_t row = 0; row < rows.size(); ++row) artifacts[rows.Text(row, 0)] = rows.Int(row, 1);
  return artifacts;
}

}  // namespace phimap
