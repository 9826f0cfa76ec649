// A real phimapd on free ports.
#ifndef PHIMAP_TESTS_E2E_SERVER_PROCESS_H_
#define PHIMAP_TESTS_E2E_SERVER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "tests/e2e/process.h"

namespace phimap::e2e {

// Started by the constructor, which returns once it is ready; killed by the destructor. It listens
// on free ports of the loopback interface unless the flags say otherwise.
class ServerProcess {
 public:
  // `data_dir` is that of --data_dir, unless it is empty; `launcher` is a command that starts the
  // one that follows it, as prlimit does.
  explicit ServerProcess(const std::string& data_dir, const std::vector<std::string>& flags = {},
                         const std::vector<std::string>& launcher = {});

  // "127.0.0.1:41234"
  const std::string& address() const { return address_; }
  const std::string& http_address() const { return http_address_; }
  Process& process() { return *process_; }
  // A new connection.
  std::unique_ptr<client::Client> Connect(client::RetryPolicy retry = {}) const;
  // Resident memory now, and its highest so far, from /proc.
  int64_t MemoryBytes() const;
  int64_t PeakMemoryBytes() const;
  // How many it has now, from /proc.
  int Threads() const;

 private:
  std::unique_ptr<Process> process_;
  std::string address_;
  std::string http_address_;
};

// The body of an HTTP GET, or "" when nothing answers.
std::string HttpGet(const std::string& address, const std::string& path);

// The value of a series without labels. There must be one.
double MetricOf(const ServerProcess& server, const std::string& name);

// Rows of numbers that depend on (seed, row, column) alone, made as they are read.
class GeneratedRows : public client::RowSource {
 public:
  GeneratedRows(int64_t rows, int32_t columns, uint64_t seed)
      : rows_(rows), columns_(columns), seed_(seed) {}

  int32_t columns() const override { return columns_; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  bool CanRewind() const override { return true; }
  absl::Status Rewind() override {
    next_ = 0;
    return absl::OkStatus();
  }

 private:
  const int64_t rows_;
  const int32_t columns_;
  const uint64_t seed_;
  int64_t next_ = 0;
};

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_SERVER_PROCESS_H_
