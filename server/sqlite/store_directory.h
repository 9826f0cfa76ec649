// Telling a fresh data directory from one that lost its database, so that no blob is ever removed
// on the word of the wrong database.
//
// The database carries a random store id; blobs/STORE repeats it and is written once, after the
// database is durable and before the first blob. From this:
//
//   phimap.sqlite   blobs/STORE and blobs       meaning
//   absent, empty   neither, no -wal file       fresh: create both
//   absent, empty   any of them                 the database was lost: DATA_LOSS
//   present         STORE has its id            normal: blobs without a version are garbage
//   present, no     neither                     creation was interrupted before STORE: write it
//   mappings
//   present         anything else               database and blobs do not belong together:
//   DATA_LOSS
#ifndef PHIMAP_SERVER_SQLITE_STORE_DIRECTORY_H_
#define PHIMAP_SERVER_SQLITE_STORE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "server/files/file_blobs.h"
#include "server/files/file_system.h"
#include "server/store/sql_catalog.h"

namespace phimap {

// DATA_LOSS when the database is absent although something of its store is there. Call before
// opening the database.
absl::Status RefuseLostDatabase(const std::string& database_path, FileBlobs* blobs,
                                FileSystem* file_system);

// DATA_LOSS unless blobs and database belong together; writes blobs/STORE in a fresh directory.
// Call before anything is removed.
absl::Status ConfirmIdentity(FileBlobs* blobs, FileSystem* file_system, SqlCatalog* catalog);

}  // namespace phimap

#endif  // PHIMAP_SERVER_SQLITE_STORE_DIRECTORY_H_
