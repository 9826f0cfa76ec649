// All that a catalog knows, as rows: the same tables in every database, so a copy of one is a copy
// for any other.
#ifndef PHIMAP_SERVER_ADMIN_CATALOG_ROWS_H_
#define PHIMAP_SERVER_ADMIN_CATALOG_ROWS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sql_database.h"

namespace phimap {

// Rows that are copied: names, versions, aliases and ended builds. The current activity of a fleet
// (leases, claims, holds, servers) is not.
struct CatalogRows {
  std::string store_id;
  std::string epoch;
  int64_t revision = 0;
  // In the order of kCopiedTables, whose columns they have.
  std::vector<SqlRows> tables;
};

struct CopiedTable {
  absl::string_view name;
  std::vector<absl::string_view> columns;
};
// In an order in which no row refers to a later one.
const std::vector<CopiedTable>& CopiedTables();

absl::StatusOr<CatalogRows> ReadCatalogRows(SqlSession& session);
// Inserts into tables that are empty except for the row of `store`, which is overwritten.
absl::Status WriteCatalogRows(SqlSession& session, const CatalogRows& rows);
// Whether nothing was ever stored there.
absl::StatusOr<bool> IsEmptyCatalog(SqlSession& session);

// The artifacts that versions name, and their sizes.
absl::StatusOr<std::map<std::string, int64_t>> NamedArtifacts(SqlSession& session);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_CATALOG_ROWS_H_
