#include "server/observe/log.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/thread/mutex.h"
#include "core/thread/start_thread.h"

namespace phimap {

bool LogRate::Admit(LogLevel level, absl::string_view event, absl::string_view caller,
                    Clock::time_point now) {
  if (level == LogLevel::kDebug) return true;
  const std::string key = absl::StrCat(event, " ", caller);
  MutexLock lock(&mutex_);
  auto& buckets = buckets_[static_cast<size_t>(level)];
  auto found = buckets.find(key);
  if (found == buckets.end()) found = buckets.emplace(key, Bucket{options_.burst, now}).first;
  Bucket& bucket = found->second;
  // Threads may arrive here in another order than that in which they read the clock, so `now` may
  // be earlier than `bucket.filled`.
  if (now > bucket.filled) {
    const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
    bucket.lines = std::min(options_.burst, bucket.lines + seconds * options_.lines_per_second);
    bucket.filled = now;
  }
  if (bucket.lines < 1) return false;
  bucket.lines -= 1;
  return true;
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Interval at which a blocked thread checks whether to stop.
constexpr milliseconds kBlockedLook{20};

int64_t Lines(absl::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

// Returns the part to write with one call: as many whole lines as a pipe takes atomically.
absl::string_view NextPiece(absl::string_view text) {
  const absl::string_view piece = text.substr(0, PIPE_BUF);
  const size_t end = piece.rfind('\n');
  return end == absl::string_view::npos ? piece : piece.substr(0, end + 1);
}

}  // namespace

struct LogWriter::State {
  State(int the_descriptor, DropLine the_drop_line, const Options& the_options)
      : descriptor(the_descriptor), drop_line(std::move(the_drop_line)), options(the_options) {}

  void Run() ABSL_LOCKS_EXCLUDED(mutex);
  // Waits for lines, or for dropped lines to report. Returns an empty batch at the end.
  std::string Take() ABSL_LOCKS_EXCLUDED(mutex);
  void AppendDrops(std::string& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void WriteAll(absl::string_view batch) ABSL_LOCKS_EXCLUDED(mutex);
  // Writes a part of `piece` and returns its length. Returns a negative number if the descriptor
  // takes no more.
  ssize_t WritePiece(absl::string_view piece) ABSL_LOCKS_EXCLUDED(mutex);
  // Returns false if the writer must stop before the descriptor is writable.
  bool WaitUntilWritable() ABSL_LOCKS_EXCLUDED(mutex);

  const int descriptor;
  const DropLine drop_line;
  const Options options;

  mutable Mutex mutex;
  CondVar changed;
  std::string queued ABSL_GUARDED_BY(mutex);
  // Bytes that the thread has taken from the queue but not yet written.
  int64_t unwritten_bytes ABSL_GUARDED_BY(mutex) = 0;
  LogDrops drops ABSL_GUARDED_BY(mutex);
  LogDrops told ABSL_GUARDED_BY(mutex);
  Clock::time_point tell_next ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  Clock::time_point stop_by ABSL_GUARDED_BY(mutex);
  bool ended ABSL_GUARDED_BY(mutex) = false;
};

void LogWriter::State::Run() {
  for (std::string batch = Take(); !batch.empty(); batch = Take()) WriteAll(batch);
  MutexLock lock(&mutex);
  ended = true;
  changed.NotifyAll();
}

std::string LogWriter::State::Take() {
  MutexLock lock(&mutex);
  while (queued.empty() && !stopping) {
    if (drops == told) {
      changed.Wait(&mutex);
    } else if (!changed.WaitUntil(&mutex, tell_next)) {
      break;
    }
  }
  std::string batch;
  std::swap(batch, queued);
  if (stopping || Clock::now() >= tell_next) AppendDrops(batch);
  unwritten_bytes = static_cast<int64_t>(batch.size());
  return batch;
}

void LogWriter::State::AppendDrops(std::string& batch) {
  if (drops == told) return;
  const auto tell = [&](absl::string_view reason, int64_t count) {
    if (count > 0) batch += drop_line(reason, count);
  };
  tell("queue_full", drops.queue_full - told.queue_full);
  tell("rate", drops.rate - told.rate);
  tell("write_failed", drops.write_failed - told.write_failed);
  told = drops;
  tell_next = Clock::now() + options.tell_interval;
}

void LogWriter::State::WriteAll(absl::string_view batch) {
  while (!batch.empty()) {
    const ssize_t written = WritePiece(NextPiece(batch));
    MutexLock lock(&mutex);
    if (written < 0) {
      drops.write_failed += Lines(batch);
      // Failed writes are not reported by a line: that line would fail too, again and again.
      told.write_failed = drops.write_failed;
      unwritten_bytes = 0;
      return;
    }
    unwritten_bytes -= written;
    batch.remove_prefix(static_cast<size_t>(written));
  }
}

ssize_t LogWriter::State::WritePiece(absl::string_view piece) {
  while (WaitUntilWritable()) {
    const ssize_t written = ::write(descriptor, piece.data(), piece.size());
    if (written >= 0) return written;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -1;
    // Another process made the descriptor non-blocking, and it cannot take the whole piece now.
    ::poll(nullptr, 0, static_cast<int>(kBlockedLook.count()));
  }
  return -1;
}

bool LogWriter::State::WaitUntilWritable() {
  while (true) {
    pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
    // If poll fails, write(2) finds out why.
    if (::poll(&ready, 1, static_cast<int>(kBlockedLook.count())) != 0) return true;
    MutexLock lock(&mutex);
    if (stopping && Clock::now() >= stop_by) return false;
  }
}

LogWriter::LogWriter(int descriptor, DropLine drop_line, const Options& options)
    : state_(std::make_shared<State>(descriptor, std::move(drop_line), options)) {
  // Blocks all signals in the thread: they are for the program's own threads. With SIGPIPE blocked,
  // a closed pipe is an error of write(2).
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = StartThread("the log", [state = state_] { state->Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogWriter::~LogWriter() {
  bool ended = false;
  {
    MutexLock lock(&state_->mutex);
    state_->stopping = true;
    state_->stop_by = Clock::now() + state_->options.end_wait;
    state_->changed.NotifyAll();
    // The thread gives up by itself before this time. If it has not, it hangs in write(2).
    const Clock::time_point give_up = state_->stop_by + 5 * kBlockedLook;
    while (!state_->ended && state_->changed.WaitUntil(&state_->mutex, give_up)) {
    }
    ended = state_->ended;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void LogWriter::Write(absl::string_view line) {
  MutexLock lock(&state_->mutex);
  const auto size = static_cast<int64_t>(line.size());
  const int64_t waiting = static_cast<int64_t>(state_->queued.size()) + state_->unwritten_bytes;
  if (waiting + size > state_->options.max_queued_bytes) {
    ++state_->drops.queue_full;
    return;
  }
  // If the queue is not empty, the thread has been notified or will check the queue before it
  // waits.
  if (state_->queued.empty()) state_->changed.NotifyAll();
  state_->queued.append(line.data(), line.size());
}

void LogWriter::DropForRate() {
  MutexLock lock(&state_->mutex);
  if (state_->drops == state_->told) state_->changed.NotifyAll();
  ++state_->drops.rate;
}

LogDrops LogWriter::drops() const {
  MutexLock lock(&state_->mutex);
  return state_->drops;
}

namespace {

std::unique_ptr<LogWriter> WriterToStderr(LogFormat format) {
  return std::make_unique<LogWriter>(
      STDERR_FILENO, [format](absl::string_view reason, int64_t count) {
        return FormatLogLine(absl::Now(), LogLevel::kWarning, "log_lines_dropped",
                             {{"reason", reason}, {"count", count}}, format);
      });
}

}  // namespace

Logger::Logger(LogLevel level, LogFormat format)
    : level_(level),
      format_(format),
      writer_(WriterToStderr(format)),
      rate_(std::make_unique<LogRate>()) {}

Logger::Logger(LogLevel level, Sink sink, LogFormat format)
    : level_(level), format_(format), sink_(std::move(sink)) {}

namespace {

// Who did what a line tells; "" if nobody known.
absl::string_view CallerIn(std::initializer_list<LogField> fields) {
  for (const LogField& field : fields) {
    if (field.key == "caller") return field.value.text();
  }
  return "";
}

}  // namespace

bool Logger::SamplesCall() const {
  const int64_t sampling = sampling_.load(std::memory_order_relaxed);
  return sampling > 0 && calls_.fetch_add(1, std::memory_order_relaxed) % sampling == 0;
}

void Logger::Log(LogLevel level, absl::string_view event,
                 std::initializer_list<LogField> fields) const {
  if (!Enabled(level)) return;
  if (sink_) return sink_(FormatLogLine(absl::Now(), level, event, fields, format_));
  if (!rate_->Admit(level, event, CallerIn(fields), LogRate::Clock::now())) {
    return writer_->DropForRate();
  }
  writer_->Write(FormatLogLine(absl::Now(), level, event, fields, format_));
}

LogDrops Logger::drops() const { return writer_ == nullptr ? LogDrops() : writer_->drops(); }

}  // namespace phimap
