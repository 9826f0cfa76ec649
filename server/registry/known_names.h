// What a server knows of names, kept in a file beside its cache of artifacts, so that a server that
// starts while the database is away can serve what it served before.
#ifndef PHIMAP_SERVER_REGISTRY_KNOWN_NAMES_H_
#define PHIMAP_SERVER_REGISTRY_KNOWN_NAMES_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "server/observe/log.h"
#include "server/store/files/file_system.h"
#include "server/store/records.h"

namespace phimap {

class VersionRegistry;

// All names at a revision, and the records of versions that were loaded since the server started.
struct KnownNames {
  // SHA-256 of the store's address, which may have a password.
  std::string store;
  Revision revision;
  std::vector<MappingNames> mappings = {};
  std::vector<VersionRecord> records = {};
};

// The contents of the file: lines of fields, and at the end the SHA-256 of what comes before it.
std::string TextOf(const KnownNames& names);
// DATA_LOSS (NAMES_FILE_INVALID) unless TextOf wrote the text.
absl::StatusOr<KnownNames> ParseKnownNames(absl::string_view text);

// Keeps a registry's names in a file. Thread-safe.
class KnownNamesFile {
 public:
  // Maximum time for which a change is not in the file yet.
  static constexpr std::chrono::seconds kDelay{2};

  // `store` tells stores apart: a file of another one counts as none. The other arguments must
  // outlive this object.
  KnownNamesFile(std::string path, const std::string& store, FileSystem& files,
                 VersionRegistry& registry, const Logger& logger);

  // Asks the store for all names. If its database is away, takes those of an earlier server, and
  // logs it; UNAVAILABLE if there are none. Other errors are those of the store.
  absl::Status Learn();
  // Reads the file of an earlier server into the registry, which must know nothing yet. NOT_FOUND
  // if there is none of this store; DATA_LOSS if it is damaged.
  absl::Status Recall();
  // Writes the file if the registry knows more than the file has, but not again within kDelay. To
  // be called now and then. Failures are logged: without the file, the next server merely has to
  // wait for the database.
  void SaveSometimes() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the file if the registry knows more than the file has.
  void Save() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Write(const std::string& text);

  const std::string path_;
  const std::string store_;
  FileSystem& files_;
  VersionRegistry& registry_;
  const Logger& logger_;
  Mutex mutex_;
  // The registry's count of changes that the file has, and the time of the last writing.
  int64_t saved_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point saved_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_KNOWN_NAMES_H_
