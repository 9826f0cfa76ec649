// Opens the store that the command line selects.
#ifndef PHIMAP_SERVER_OPEN_STORE_H_
#define PHIMAP_SERVER_OPEN_STORE_H_

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/observe/crash_record.h"
#include "server/observe/log.h"
#include "server/options.h"
#include "server/store/files/artifact_cache.h"
#include "server/store/fleet_member.h"
#include "server/store/store.h"
#include "server/store/store_facts.h"
#include "server/store/store_upkeep.h"

namespace phimap {

struct OpenedStore {
  // Wraps a store that no other server shares. Implicit, so that tests can pass the store itself.
  template <std::derived_from<Store> AnyStore>
  OpenedStore(std::unique_ptr<AnyStore> the_store)  // NOLINT
      : store(std::move(the_store)) {}

  std::unique_ptr<Store> store;
  // Collects garbage and checks artifacts; null in tests.
  std::unique_ptr<StoreUpkeep> upkeep;
  // Source of other servers' changes; null if no other server shares the store.
  std::unique_ptr<ChangeFeed> changes;
  // This server's membership in the fleet; null if no other server shares the store.
  std::unique_ptr<FleetMember> member;
  // Facts for operators; null in tests.
  std::function<StoreFacts()> facts;
  // Counts the crashes of this server; null in tests.
  std::unique_ptr<CrashRecord> crash_record;
  // Cache of artifacts; null if the store keeps them on this machine.
  std::shared_ptr<ArtifactCache> cache;
  // Where to keep known names for a start without the database; "" if the store cannot be away.
  std::string names_path;
};

// Opens and checks the store, creates missing tables and folders, and logs the result to `logger`,
// which must outlive the store. A PostgreSQL that cannot be reached is opened later, when it is
// first used. Returns errors of SqliteStore::Open, PostgresDatabase::Open and
// ArtifactCache::Open. REQUIRES: ParseOptions returned `options`.
absl::StatusOr<OpenedStore> OpenStore(const ServerOptions& options, const Logger& logger);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OPEN_STORE_H_
