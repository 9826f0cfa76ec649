#include "server/open_store.h"

#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "core/status/status_macros.h"
#include "server/store/build_claims.h"
#include "server/store/files/artifact_cache.h"
#include "server/store/fleet_member.h"
#include "server/store/postgres/postgres_blobs.h"
#include "server/store/postgres/postgres_database.h"
#include "server/store/postgres/postgres_feed.h"
#include "server/store/postgres/postgres_schema.h"
#include "server/store/sqlite/sqlite_store.h"
#include "server/store/store.h"

namespace phimap {
namespace {

// Returns a text that is different for each process that may use the same store.
std::string Holder() {
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  return absl::StrCat("phimapd ", ::getpid(), " on ", host, " ", absl::ToUnixMicros(absl::Now()));
}

std::unique_ptr<StoreUpkeep> LookAfter(
    const std::shared_ptr<SqlDatabase>& database, const std::shared_ptr<Blobs>& blobs,
    const std::shared_ptr<StoreClock>& clock, const ServerOptions& options, const Logger& logger,
    std::function<void()> prepare = [] {}) {
  UpkeepOptions upkeep;
  upkeep.prepare = std::move(prepare);
  upkeep.grace = absl::Seconds(options.gc_grace_seconds);
  upkeep.scrub_bytes_per_second = options.scrub_bytes_per_second;
  return std::make_unique<StoreUpkeep>(database, blobs, Holder(), clock, upkeep, logger);
}

// Warns if --data_dir contains a cache but no SQLite database. The cache shows that an earlier
// server used this directory together with PostgreSQL.
void WarnOfCacheAlone(const ServerOptions& options, const Logger& logger) {
  FileSystem& files = *PosixFileSystem();
  if (!absl::IsNotFound(files.SizeBytes(options.data_dir + "/phimap.sqlite").status())) return;
  if (!files.List(options.data_dir + "/cache").ok()) return;
  logger.Log(
      LogLevel::kWarning, "store_is_new_beside_a_cache",
      {{"data_dir", options.data_dir},
       {"help",
        "this server starts with an empty store in a directory that another server used as its "
        "PostgreSQL cache; is --store=postgresql://… missing?"}});
}

absl::StatusOr<OpenedStore> OpenSqlite(const ServerOptions& options, const Logger& logger) {
  WarnOfCacheAlone(options, logger);
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteStore> store,
                          SqliteStore::Open({.data_dir = options.data_dir}, PosixFileSystem()));
  const StartupReport& report = store->startup_report();
  logger.Log(LogLevel::kInfo, "store_open",
             {{"data_dir", options.data_dir}, {"removed_builds", report.removed_builds}});
  SqliteStore* const raw_store = store.get();
  const std::shared_ptr<SqlDatabase> database = store->database();
  const std::shared_ptr<Blobs> blobs = store->blobs();
  const std::shared_ptr<StoreClock> clock = store->clock();
  OpenedStore opened(std::move(store));
  opened.upkeep =
      LookAfter(database, blobs, clock, options, logger, [raw_store] { raw_store->MakeReserve(); });
  StoreFacts facts;
  PHIMAP_RETURN_IF_ERROR(database->Read([&facts](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows, session.Run("SELECT store_id FROM store"));
    facts.store_id = rows.Text(0, 0);
    return absl::OkStatus();
  }));
  opened.facts = [facts] { return facts; };
  opened.crash_record = std::make_unique<CrashRecord>(options.data_dir + "/crashes", logger);
  return opened;
}

FleetServer ThisServer(const ServerOptions& options) {
  char host[256] = "?";
  gethostname(host, sizeof(host) - 1);
  return {.id = NewServerId(),
          .name = absl::StrCat(host, " ", options.listen),
          .release = PHIMAP_VERSION,
          .schema_version = static_cast<int64_t>(PostgresMigrations().size()),
          .artifact_format = kArtifactFormat,
          .arithmetic = kArithmetic};
}

// Calls of the API give up reading, or a change, after this time. Maintenance may take longer.
constexpr absl::Duration kReadLimit = absl::Seconds(1);
constexpr absl::Duration kChangeLimit = absl::Seconds(10);

// Opens the database, or, if it is away, an object that connects when it is used.
absl::StatusOr<std::shared_ptr<PostgresDatabase>> OpenDatabase(const std::string& uri,
                                                               const Logger& logger) {
  const PostgresDatabaseOptions options{.read_limit = kReadLimit, .change_limit = kChangeLimit};
  absl::StatusOr<std::shared_ptr<PostgresDatabase>> opened = PostgresDatabase::Open(uri, options);
  if (opened.ok() || !absl::IsUnavailable(opened.status())) return opened;
  logger.Log(LogLevel::kWarning, "database_away",
             {{"error", opened.status().message()},
              {"help",
               "the server serves what it knows from an earlier run until the database can be "
               "reached"}});
  return PostgresDatabase::OpenLater(uri, options);
}

void WarnOfNoStandby(const PostgresDatabase& database, const Logger& logger) {
  if (!database.place().empty() && !database.has_synchronous_standby()) {
    logger.Log(
        LogLevel::kWarning, "no_synchronous_standby",
        {{"database", database.place()},
         {"help",
          "PostgreSQL's synchronous_standby_names is empty, so commits exist on one machine "
          "only and are lost if it fails; set a standby there before you rely on failover"}});
  }
}

absl::StatusOr<OpenedStore> OpenPostgres(const ServerOptions& options, const Logger& logger) {
  if (!options.data_dir.empty() && absl::StartsWith(options.cache_dir, options.data_dir + "/")) {
    PHIMAP_RETURN_IF_ERROR(PosixFileSystem()->CreateDir(options.data_dir));
  }
  PHIMAP_ASSIGN_OR_RETURN(
      std::shared_ptr<ArtifactCache> cache,
      ArtifactCache::Open(options.cache_dir, options.cache_bytes, PosixFileSystem(), logger));
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<PostgresDatabase> database,
                          OpenDatabase(options.store, logger));
  const ArtifactCache::Statistics copies = cache->statistics();
  const FleetServer server = ThisServer(options);
  logger.Log(LogLevel::kInfo, "store_open",
             {{"database", database->place()},
              {"server_id", server.id},
              {"cache_dir", options.cache_dir},
              {"cached_artifacts", copies.artifacts},
              {"cached_bytes", copies.bytes}});
  WarnOfNoStandby(*database, logger);
  const auto blobs =
      std::make_shared<CachedBlobs>(std::make_unique<PostgresBlobs>(database), cache);
  const auto clock = std::make_shared<StoreClock>();
  OpenedStore opened(std::make_unique<Store>(
      database, blobs, clock, std::make_unique<BuildClaims>(database, server.id, clock)));
  PHIMAP_ASSIGN_OR_RETURN(opened.member,
                          FleetMember::Join(database, server, FleetMember::kPeriod,
                                            [database] { database->LookAtFacts(); }));
  opened.facts = [database] { return database->facts(); };
  opened.crash_record = std::make_unique<CrashRecord>(options.cache_dir + "/crashes", logger);
  const std::shared_ptr<PostgresDatabase> patient = PostgresDatabase::OpenLater(options.store);
  opened.upkeep = LookAfter(
      patient, std::make_shared<CachedBlobs>(std::make_unique<PostgresBlobs>(patient), cache),
      clock, options, logger);
  opened.names_path = absl::StrCat(options.cache_dir, "/", ArtifactCache::kNamesFile);
  opened.changes = std::make_unique<PostgresFeed>(options.store);
  opened.cache = std::move(cache);
  return opened;
}

}  // namespace

absl::StatusOr<OpenedStore> OpenStore(const ServerOptions& options, const Logger& logger) {
  return options.on_postgres() ? OpenPostgres(options, logger) : OpenSqlite(options, logger);
}

}  // namespace phimap
