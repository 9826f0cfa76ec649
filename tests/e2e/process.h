// A real process under test.
#ifndef PHIMAP_TESTS_E2E_PROCESS_H_
#define PHIMAP_TESTS_E2E_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap::e2e {

// The exit code and the output of a process.
struct ProcessResult {
  // The exit code, or −S if the process was ended by signal number S.
  int exit_code = 0;
  std::string out;
  std::string err;
};

// A child process whose stdout is a pipe and whose stderr is a temporary file. The destructor kills
// the process if it still runs. Not thread-safe, but Signal may be called from any thread before
// Wait.
class Process {
 public:
  // Starts the program `arguments[0]`. If that fails, aborts the test.
  explicit Process(const std::vector<std::string>& arguments, const std::string& input = "");
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // The next line of stdout without its end, or "" at the end of the stream.
  std::string ReadLine();
  // What the process has written to stderr so far.
  std::string ErrorsSoFar() const;
  // Returns what the process has written to stderr, once that has `text` or ten seconds have
  // passed. A server may act before it has written the line that says so.
  std::string AwaitErrors(absl::string_view text) const;
  void Signal(int signal);
  // Waits until the process has ended. Idempotent.
  ProcessResult Wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string err_path_;
  std::string buffered_;
  bool ended_ = false;
  ProcessResult result_;
};

// Starts a process, waits for its end and returns its result.
ProcessResult RunProcess(const std::vector<std::string>& arguments, const std::string& input = "");

// A temporary folder, which is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_PROCESS_H_
