// Runs a real phimapd on free ports.
#ifndef PHIMAP_TESTS_E2E_SERVER_PROCESS_H_
#define PHIMAP_TESTS_E2E_SERVER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "tests/e2e/process.h"

namespace phimap::e2e {

// A server that the constructor starts and the destructor kills. The constructor returns once the
// server is ready. The server listens on free ports of the loopback interface unless the flags say
// otherwise.
class ServerProcess {
 public:
  // `data_dir` is passed as --data_dir unless it is empty. `launcher` is the beginning of a command
  // line that starts the server, such as prlimit with its flags.
  explicit ServerProcess(const std::string& data_dir, const std::vector<std::string>& flags = {},
                         const std::vector<std::string>& launcher = {});

  // For example "127.0.0.1:41234".
  const std::string& address() const { return address_; }
  const std::string& http_address() const { return http_address_; }
  Process& process() { return *process_; }
  // Opens a new connection.
  std::unique_ptr<client::Client> Connect(client::RetryPolicy retry = {}) const;
  // The current resident memory, and the highest so far, from /proc.
  int64_t MemoryBytes() const;
  int64_t PeakMemoryBytes() const;
  // The current number of threads, from /proc.
  int Threads() const;

 private:
  std::unique_ptr<Process> process_;
  std::string address_;
  std::string http_address_;
};

// Returns the body of the answer to an HTTP GET, or "" without an answer.
std::string HttpGet(const std::string& address, const std::string& path);

// Returns the value of the metric `name`. REQUIRES: the metric exists and has no labels.
double MetricOf(const ServerProcess& server, const std::string& name);

// A source of rows that are generated while they are read. The same seed and the same sizes of
// blocks give the same numbers.
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

// GeneratedRows with the labels b, b, a, b, b, a and so on.
class LabeledGeneratedRows final : public client::LabeledRowSource {
 public:
  LabeledGeneratedRows(int64_t rows, int32_t columns, uint64_t seed) : rows_(rows, columns, seed) {}

  int32_t columns() const override { return rows_.columns(); }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override {
    absl::StatusOr<client::ExampleBlock> block = rows_.Next(limits);
    if (block.ok()) taken_ = block->rows();
    return block;
  }
  std::vector<std::string> TakeLabels() override {
    std::vector<std::string> labels;
    for (int64_t i = 0; i < taken_; ++i) labels.push_back(++number_ % 3 == 0 ? "a" : "b");
    return labels;
  }

 private:
  GeneratedRows rows_;
  int64_t taken_ = 0;
  int64_t number_ = 0;
};

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_SERVER_PROCESS_H_
