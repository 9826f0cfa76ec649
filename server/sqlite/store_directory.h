// Distinguishes a fresh data directory from one that lost its database, so that no blob is ever
// removed because the wrong database does not know it.
//
// The database carries a random store id. The file blobs/STORE repeats the id; it is written once,
// after the database is durable and before the first blob. This gives the following cases:
//
//   phimap.sqlite         blobs/STORE and blobs   meaning
//   absent or empty       neither, no -wal file   fresh: create both
//   absent or empty       any of them             the database was lost: DATA_LOSS
//   present               STORE has its id        normal: blobs without a version are garbage
//   present, no mappings  neither                 creation stopped before STORE: write STORE
//   present               anything else           they do not belong together: DATA_LOSS
#ifndef PHIMAP_SERVER_SQLITE_STORE_DIRECTORY_H_
#define PHIMAP_SERVER_SQLITE_STORE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "server/files/file_blobs.h"
#include "server/files/file_system.h"
#include "server/store/sql_catalog.h"

namespace phimap {

// Returns DATA_LOSS if the database is absent although other parts of its store exist. Must be
// called before the database is opened.
absl::Status RefuseLostDatabase(const std::string& database_path, FileBlobs* blobs,
                                FileSystem* file_system);

// Returns DATA_LOSS unless blobs and database belong together. Writes blobs/STORE in a fresh
// directory. Must be called before anything is removed.
absl::Status ConfirmIdentity(FileBlobs* blobs, FileSystem* file_system, SqlCatalog* catalog);

}  // namespace phimap

#endif  // PHIMAP_SERVER_SQLITE_STORE_DIRECTORY_H_
