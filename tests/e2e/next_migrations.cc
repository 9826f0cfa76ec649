// The tables of a phimapd of tomorrow: linked into a program in the place of
// server/postgres/postgres_migrations.cc, so that servers of two schemas can be run side by side.
#include <vector>

#define PostgresMigrations TodaysPostgresMigrations
#include "server/postgres/postgres_migrations.cc"
#undef PostgresMigrations

namespace phimap {
namespace {

// Kinds of addition: a column with a default, a table, an index.
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

}  // namespace phimap
