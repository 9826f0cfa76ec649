// The fixture of the PostgreSQL tests.
#ifndef PHIMAP_TESTS_SERVER_POSTGRES_POSTGRES_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_POSTGRES_POSTGRES_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/status/check.h"
#include "core/status/error.h"
#include "server/postgres/postgres_database.h"
#include "tests/server/support/postgres_server.h"

namespace phimap {

// The reason of an error; "" if it has none.
inline std::string ReasonOf(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() ? detail->reason : "";
}

// Each test has its own database on a shared server, so that cutting connections or changing
// settings does not disturb other tests.
class PostgresTest : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresConnection> Connect(const PostgresTimeouts& timeouts = {}) {
    auto connection = PostgresConnection::Open(uri_, timeouts);
    PHIMAP_CHECK(connection.ok());
    return *std::move(connection);
  }
  std::unique_ptr<PostgresDatabase> OpenDatabase(const PostgresDatabaseOptions& options = {}) {
    auto database = PostgresDatabase::Open(uri_, options);
    PHIMAP_CHECK(database.ok());
    return *std::move(database);
  }
  SqlRows Run(const std::string& sql) { return server_.Run(sql, name_); }

  phimap::testing::PostgresServer& server_ = phimap::testing::PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
  const std::string uri_ = server_.Uri(name_);
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_POSTGRES_POSTGRES_FIXTURE_H_
