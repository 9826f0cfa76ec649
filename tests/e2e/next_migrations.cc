// The tables of a future phimapd. The program phimapd_next links this file instead of
// server/store/postgres/postgres_migrations.cc, so that tests can run servers with two schema
// versions side by side.
#include <vector>

#define PostgresMigrations TodaysPostgresMigrations
#include "server/store/postgres/postgres_migrations.cc"
#undef PostgresMigrations

namespace phimap::testing {
namespace {

// The additional migration makes every kind of addition: a column with a default, a table, and an
// index.
constexpr char kTomorrow[] = R"sql(
ALTER TABLE versions ADD COLUMN tomorrow TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE TABLE tomorrow (name TEXT COLLATE "C" PRIMARY KEY NOT NULL);
CREATE INDEX versions_by_time ON versions (create_time_us);
)sql";

}  // namespace

absl::Span<const PostgresMigration> PostgresMigrations() {
  static const std::vector<PostgresMigration>* const migrations = [] {
    const absl::Span<const PostgresMigration> today = TodaysPostgresMigrations();
    auto* const all = new std::vector<PostgresMigration>(today.begin(), today.end());
    all->push_back({kTomorrow, static_cast<int64_t>(today.size())});
    return all;
  }();
  return *migrations;
}

}  // namespace phimap::testing
