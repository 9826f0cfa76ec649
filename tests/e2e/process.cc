#include "tests/e2e/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "core/status/check.h"

extern char** environ;

namespace phimap::e2e {
namespace {

std::string TemporaryFile() {
  std::string path = (std::filesystem::temp_directory_path() / "phimap-e2e-XXXXXX").string();
  const int fd = mkstemp(path.data());
  PHIMAP_CHECK(fd >= 0);
  close(fd);
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const std::string& input)
    : err_path_(TemporaryFile()) {
  const std::string in_path = TemporaryFile();
  std::ofstream(in_path, std::ios::binary) << input;
  int pipe_fds[2];
  PHIMAP_CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in_path.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, err_path_.c_str(), O_WRONLY | O_TRUNC, 0600);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  PHIMAP_CHECK(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  out_ = pipe_fds[0];
  std::filesystem::remove(in_path);  // the child has already opened it
}

Process::~Process() {
  if (!ended_) {
    Signal(SIGKILL);
    Wait();
  }
  std::filesystem::remove(err_path_);
}

std::string Process::ReadLine() {
  for (;;) {
    const size_t end = buffered_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    char chunk[4096];
    const ssize_t got = read(out_, chunk, sizeof(chunk));
    if (got <= 0) return "";
    buffered_.append(chunk, static_cast<size_t>(got));
  }
}

std::string Process::ErrorsSoFar() const { return ReadFile(err_path_); }

std::string Process::AwaitErrors(absl::string_view text) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::string errors;
  do {
    errors = ErrorsSoFar();
  } while (!absl::StrContains(errors, text) && std::chrono::steady_clock::now() < until);
  return errors;
}

void Process::Signal(int signal) { kill(pid_, signal); }

ProcessResult Process::Wait() {
  if (ended_) return result_;
  char chunk[65536];
  for (ssize_t got; (got = read(out_, chunk, sizeof(chunk))) > 0;) {
    buffered_.append(chunk, static_cast<size_t>(got));
  }
  close(out_);
  int status = 0;
  PHIMAP_CHECK(waitpid(pid_, &status, 0) == pid_);
  ended_ = true;
  result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result_.out = buffered_;
  result_.err = ReadFile(err_path_);
  return result_;
}

ProcessResult RunProcess(const std::vector<std::string>& arguments, const std::string& input) {
  return Process(arguments, input).Wait();
}

TemporaryFolder::TemporaryFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "phimap-e2e-XXXXXX").string();
  PHIMAP_CHECK(mkdtemp(path.data()) != nullptr);
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace phimap::e2e
