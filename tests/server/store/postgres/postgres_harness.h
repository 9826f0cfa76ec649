// The storage place of a contract's harness on PostgreSQL: reached directly, or through PgBouncer.
#ifndef PHIMAP_TESTS_SERVER_STORE_POSTGRES_POSTGRES_HARNESS_H_
#define PHIMAP_TESTS_SERVER_STORE_POSTGRES_POSTGRES_HARNESS_H_

#include <memory>
#include <string>

#include "server/store/postgres/postgres_database.h"
#include "server/store/sql_database.h"
#include "tests/server/support/postgres_server.h"

namespace phimap::testing {

// `Harness` is the contract's; it asks for its database by OpenDatabase.
template <typename Harness>
class DirectHarness : public Harness {
 private:
  std::shared_ptr<SqlDatabase> OpenDatabase() override {
    return PostgresDatabase::Open(server_.Uri(name_)).value();
  }

  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
};

template <typename Harness>
class PoolerHarness : public Harness {
 private:
  std::shared_ptr<SqlDatabase> OpenDatabase() override {
    return PostgresDatabase::Open(pooler_.Uri(name_)).value();
  }

  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
  PgBouncer pooler_{server_};
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_STORE_POSTGRES_POSTGRES_HARNESS_H_
