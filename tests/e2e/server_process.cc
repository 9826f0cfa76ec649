#include "tests/e2e/server_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/check.h"

namespace phimap::e2e {
namespace {

// Returns a number from /proc/PID/status. Sizes in this file are in KiB.
int64_t StatusNumber(pid_t pid, const std::string& field) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    int64_t number = 0;
    if (absl::StartsWith(line, field) &&
        std::sscanf(line.c_str() + field.size(), "%ld", &number) == 1) {
      return number;
    }
  }
  PHIMAP_CHECK(false);
}

// Returns VALUE if the line contains the word `key`=VALUE.
std::string ValueOf(const std::string& line, absl::string_view key) {
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    if (absl::StartsWith(word, absl::StrCat(key, "="))) {
      return std::string(word.substr(key.size() + 1));
    }
  }
  return "";
}

}  // namespace

ServerProcess::ServerProcess(const std::string& data_dir, const std::vector<std::string>& flags,
                             const std::vector<std::string>& launcher) {
  std::vector<std::string> arguments = launcher;
  arguments.push_back(PHIMAPD_BINARY);
  if (!data_dir.empty()) arguments.push_back("--data_dir=" + data_dir);
  for (const char* flag : {"--listen=", "--http="}) {
    const bool given = std::any_of(flags.begin(), flags.end(), [flag](const std::string& given) {
      return absl::StartsWith(given, flag);
    });
    if (!given) arguments.push_back(absl::StrCat(flag, "127.0.0.1:0"));
  }
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  process_ = std::make_unique<Process>(arguments);
  const std::string line = process_->ReadLine();
  address_ = ValueOf(line, "grpc");
  http_address_ = ValueOf(line, "http");
  if (address_.empty()) {
    std::fprintf(stderr, "phimapd did not start: '%s'\n%s\n", line.c_str(),
                 process_->Wait().err.c_str());
    PHIMAP_CHECK(false);
  }
}

std::unique_ptr<client::Client> ServerProcess::Connect(client::RetryPolicy retry) const {
  return client::Client::Connect(address_, {.retry = retry}).value();
}

int64_t ServerProcess::MemoryBytes() const {
  return StatusNumber(process_->pid(), "VmRSS:") * 1024;
}

int64_t ServerProcess::PeakMemoryBytes() const {
  return StatusNumber(process_->pid(), "VmHWM:") * 1024;
}

int ServerProcess::Threads() const {
  return static_cast<int>(StatusNumber(process_->pid(), "Threads:"));
}

std::string HttpGet(const std::string& address, const std::string& path) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port)) return "";
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", address, "\r\nConnection: close\r\n\r\n");
    if (write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char chunk[65536];
      for (ssize_t got; (got = read(fd, chunk, sizeof(chunk))) > 0;) {
        answer.append(chunk, static_cast<size_t>(got));
      }
    }
  }
  close(fd);
  const size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

double MetricOf(const ServerProcess& server, const std::string& name) {
  const std::string body = HttpGet(server.http_address(), "/metrics");
  for (absl::string_view line : absl::StrSplit(body, '\n')) {
    double value = 0;
    if (absl::ConsumePrefix(&line, absl::StrCat(name, " ")) && absl::SimpleAtod(line, &value)) {
      return value;
    }
  }
  PHIMAP_CHECK(false);
}

absl::StatusOr<client::ExampleBlock> GeneratedRows::Next(const client::BlockLimits& limits) {
  const int32_t fitting = limits.RowsOf(columns_ * static_cast<int64_t>(sizeof(float)));
  const int32_t count = static_cast<int32_t>(std::min<int64_t>(fitting, rows_ - next_));
  if (count == 0) return client::ExampleBlock();
  std::vector<float> values(static_cast<size_t>(count) * columns_);
  uint64_t state = seed_ * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(next_);
  for (float& value : values) {
    // The high bits of a linear congruential generator are random enough to make the rows differ.
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<int32_t>(state >> 40)) * 0x1p-23f - 1.0f;
  }
  next_ += count;
  return client::MakeRowBlock(absl::MakeConstSpan(values), columns_);
}

}  // namespace phimap::e2e
