// A real process under test.
#ifndef PHIMAP_TESTS_E2E_PROCESS_H_
#define PHIMAP_TESTS_E2E_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace phimap::e2e {

// How a process ended and what it wrote.
struct ProcessResult {
  // Exit code, or −signal.
  int exit_code = 0;
  std::string out;
  std::string err;
};

// A child process whose stdout is a pipe and whose stderr is a temporary file. Killed by its
// destructor if it still runs. Not thread-safe, but Kill may be called from any thread before Wait.
class Process {
 public:
  // Starts `arguments[0]`; aborts the test binary when that fails.
  explicit Process(const std::vector<std::string>& arguments, const std::string& input = "");
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // The next line of stdout without its end, or "" at the end of the stream.
  std::string ReadLine();
  // The stderr of the process so far.
  std::string ErrorsSoFar() const;
  void Signal(int signal);
  // Waits for the end. Idempotent.
  ProcessResult Wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string err_path_;
  std::string buffered_;
  bool ended_ = false;
  ProcessResult result_;
};

// Starts, waits, returns.
ProcessResult RunProcess(const std::vector<std::string>& arguments, const std::string& input = "");

// A temporary folder, removed with all it holds.
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
