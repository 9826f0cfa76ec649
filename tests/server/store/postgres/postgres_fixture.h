// The fixture of the PostgreSQL tests.
#ifndef PHIMAP_TESTS_SERVER_STORE_POSTGRES_POSTGRES_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_STORE_POSTGRES_POSTGRES_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/status/check.h"
#include "core/status/error.h"
#include "server/store/postgres/postgres_database.h"
#include "tests/server/support/postgres_server.h"

namespace phimap {

// Each test has its own database on a shared server, so that cutting connections or changing
// settings does not disturb other tests.
class PostgresTest : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresConnection> Connect(const PostgresTimeouts& timeouts = {}) {
    return PostgresConnection::Open(uri_, timeouts).value();
  }
  std::unique_ptr<PostgresDatabase> OpenDatabase(const PostgresDatabaseOptions& options = {}) {
    return PostgresDatabase::Open(uri_, options).value();
  }
  SqlRows Run(const std::string& sql) { return server_.Run(sql, name_); }

  phimap::testing::PostgresServer& server_ = phimap::testing::PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
  const std::string uri_ = server_.Uri(name_);
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_STORE_POSTGRES_POSTGRES_FIXTURE_H_
