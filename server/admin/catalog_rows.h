// The contents of a catalog as rows. Every database has the same tables, so a copy from one can be
// written to any other.
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

// The rows that are copied: names, versions, aliases, ended builds and operations. The current
// activity of a fleet (leases, claims, holds, servers) is not copied, and neither are the ids of
// changes: what is written gets an id of its own, so that a copy is known as another history.
struct CatalogRows {
  std::string store_id;
  int64_t revision = 0;
  // Rows of the tables and columns of CopiedTables(), in the same order.
  std::vector<SqlRows> tables;
};

struct CopiedTable {
  absl::string_view name;
  std::vector<absl::string_view> columns;
};
// Returns the copied tables, in an order in which no row refers to a later one.
const std::vector<CopiedTable>& CopiedTables();

absl::StatusOr<CatalogRows> ReadCatalogRows(SqlSession& session);
// Inserts the rows. The tables must be empty except for the row of `store`, which is overwritten.
absl::Status WriteCatalogRows(SqlSession& session, const CatalogRows& rows);
// Returns whether nothing was ever stored in the catalog.
absl::StatusOr<bool> IsEmptyCatalog(SqlSession& session);

// Returns the digests of the artifacts that versions refer to, with their sizes in bytes.
absl::StatusOr<std::map<std::string, int64_t>> NamedArtifacts(SqlSession& session);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_CATALOG_ROWS_H_
