// Tests `phimap transform` while its server is killed and started again at the same address.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

// A named pipe for the rows. Open waits until the reader has opened the pipe, too. Write does not
// wait, because all rows of a test fit into the pipe's buffer.
class InputPipe {
 public:
  explicit InputPipe(std::string path) : path_(std::move(path)) {
    PHIMAP_CHECK(mkfifo(path_.c_str(), 0600) == 0);
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~InputPipe() { Close(); }
  InputPipe(const InputPipe&) = delete;
  InputPipe& operator=(const InputPipe&) = delete;

  void Open() {
    fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    PHIMAP_CHECK(fd_ >= 0);
  }
  void Write(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t size = write(fd_, text.data() + at, text.size() - at);
      if (size < 0 && errno == EPIPE) return;  // the reader has ended; its exit code is checked
      PHIMAP_CHECK(size > 0);
      at += static_cast<size_t>(size);
    }
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  int fd_ = -1;
};

// A port that accepts connections but never answers. A health check of this port therefore lasts
// until its timeout.
class SilentPort {
 public:
  SilentPort() {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    PHIMAP_CHECK(fd_ >= 0 && bind(fd_, reinterpret_cast<sockaddr*>(&any), size) == 0 &&
                 listen(fd_, 8) == 0 &&
                 getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size) == 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(any.sin_port));
  }
  ~SilentPort() { close(fd_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;
  const std::string& address() const { return address_; }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string address_;
};

// The rows `first`, …, `end` − 1, which have two columns, as lines of a CSV file.
std::string RowLines(int first, int end) {
  std::string lines;
  for (int i = first; i < end; ++i) absl::StrAppend(&lines, i % 101, ",", i % 7, "\n");
  return lines;
}

class TransformRestartTest : public ::testing::Test {
 protected:
  TransformRestartTest() { Build(server_->address(), "f1(landmarks=20)"); }

  static ProcessResult PhimapAt(const std::string& address, std::vector<std::string> words,
                                const std::string& input = "") {
    words.insert(words.begin(), {PHIMAP_BINARY, "--server=" + address});
    return RunProcess(words, input);
  }
  static void Build(const std::string& address, const std::string& mapping) {
    const ProcessResult built = PhimapAt(address,
                                         {"build", "m", "--input=-", "--format=csv",
                                          "--spec=" + mapping, "--kernel=rbf(gamma=0.01)"},
                                         "a,b\n" + RowLines(0, 500));
    PHIMAP_CHECK(built.exit_code == 0);
  }
  // Returns the features of all rows that the test maps.
  std::string Expected() {
    const ProcessResult all =
        PhimapAt(server_->address(), {"transform", "m", "--input=-", "--format=csv", "--output=-"},
                 "a,b\n" + RowLines(0, kRows));
    PHIMAP_CHECK(all.exit_code == 0);
    return all.out;
  }
  // Maps all rows with `phimap transform`. When the first features arrive, the server is killed,
  // and more rows are sent. Then a new server with the store `data_dir` starts at the same address,
  // and the remaining rows are sent. In between, `checks_while_away` health checks of 5 s each make
  // time pass.
  ProcessResult TransformOver(const std::string& data_dir, int checks_while_away = 0) {
    const std::string address = server_->address();
    Process transform({PHIMAP_BINARY, "--server=" + address, "transform", "m",
                       "--input=" + pipe_.path(), "--format=csv", "--output=-"});
    pipe_.Open();
    pipe_.Write("a,b\n" + RowLines(0, kRows / 4));
    std::string read;
    // Once the header and 16 rows are there, the first request has been answered and the second is
    // under way.
    for (int i = 0; i < 17; ++i) read += transform.ReadLine() + "\n";
    server_->process().Signal(SIGKILL);
    server_->process().Wait();
    pipe_.Write(RowLines(kRows / 4, kRows / 2));
    for (int i = 0; i < checks_while_away; ++i) {
      const SilentPort port;
      PhimapAt(port.address(), {"health", "--timeout=5"});
    }
    server_ = std::make_unique<ServerProcess>(data_dir, std::vector{"--listen=" + address});
    pipe_.Write(RowLines(kRows / 2, kRows));
    pipe_.Close();
    ProcessResult result = transform.Wait();
    result.out.insert(0, read);
    return result;
  }

  static constexpr int kRows = 4000;
  TemporaryFolder folder_;
  TemporaryFolder data_;
  std::unique_ptr<ServerProcess> server_ = std::make_unique<ServerProcess>(data_.path());
  InputPipe pipe_{folder_.path() + "/rows"};
};

TEST_F(TransformRestartTest, ATransformSurvivesARestartWithEveryRowOnceAndInOrder) {
  const std::string expected = Expected();
  const ProcessResult result = TransformOver(data_.path());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // EXPECT_TRUE is used because EXPECT_EQ would print a megabyte.
  EXPECT_TRUE(result.out == expected) << result.out.size() << " bytes for " << expected.size();
  EXPECT_THAT(result.err, HasSubstr("4,000 rows mapped by m@1"));
}

// The server is away for ten seconds, in which the client makes several attempts. The test does not
// check how soon the client notices that the server is back: it would also pass without the setting
// in main.cc that makes the client check five times per second.
TEST_F(TransformRestartTest, ATransformSurvivesAServerThatIsAwayForAWhile) {
  const std::string expected = Expected();
  const ProcessResult result = TransformOver(data_.path(), /*checks_while_away=*/2);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out == expected) << result.out.size() << " bytes for " << expected.size();
}

// A server with another store takes the address. Its m@1 is a different version, and the output
// must not mix features of two versions.
TEST_F(TransformRestartTest, AnotherVersionUnderTheNumberIsRefused) {
  TemporaryFolder others;
  {
    ServerProcess other(others.path());
    Build(other.address(), "f1(landmarks=20, serving_type=float64)");
    other.process().Signal(SIGTERM);
    other.process().Wait();
  }
  const ProcessResult result = TransformOver(others.path());
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_THAT(result.err, HasSubstr("digest"));
}

}  // namespace
}  // namespace phimap::e2e
