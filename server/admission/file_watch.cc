#include "server/admission/file_watch.h"

#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "core/thread/start_thread.h"

namespace phimap {
namespace {

// With StreamCall's looks at its caller, a token that was taken out ends a stream within a second.
constexpr auto kInterval = std::chrono::milliseconds(400);

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileWatch::FileWatch(std::vector<std::string> paths, std::function<void()> changed)
    : paths_(std::move(paths)), changed_(std::move(changed)), seen_(Stamps()) {}

FileWatch::~FileWatch() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopping_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void FileWatch::Start() {
  thread_ = StartThread("watching files", [this] { Run(); });
}

FileWatch::Stamp FileWatch::StampOf(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return {};
  return {static_cast<int64_t>(file.st_dev), static_cast<int64_t>(file.st_ino), file.st_size,
          Nanoseconds(file.st_mtim), Nanoseconds(file.st_ctim)};
}

std::vector<FileWatch::Stamp> FileWatch::Stamps() const {
  std::vector<Stamp> stamps;
  for (const std::string& path : paths_) stamps.push_back(StampOf(path));
  return stamps;
}

void FileWatch::Look() {
  MutexLock lock(&looking_);
  // Taken before the files are read, so that a change during the reading is noticed later.
  std::vector<Stamp> stamps = Stamps();
  if (stamps == seen_) return;
  seen_ = std::move(stamps);
  changed_();
}

void FileWatch::Run() {
  while (true) {
    {
      const auto deadline = std::chrono::steady_clock::now() + kInterval;
      MutexLock lock(&mutex_);
      while (!stop_ && stopping_.WaitUntil(&mutex_, deadline)) {
      }
      if (stop_) return;
    }
    Look();
  }
}

}  // namespace phimap
