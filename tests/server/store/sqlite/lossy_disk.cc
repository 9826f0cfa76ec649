#include "tests/server/store/sqlite/lossy_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "core/status/check.h"

namespace phimap {
namespace {

namespace fs = std::filesystem;

}  // namespace

LossyDisk::LossyDisk(std::string root, FaultPlan* plan) : root_(std::move(root)), plan_(plan) {
  plan_->after = [this](const std::string& operation, const std::string& path) {
    Follow(operation, path);
    if (after) after();
  };
}

LossyDisk::~LossyDisk() {
  plan_->after = nullptr;
  for (const auto& [number, fd] : kept_) close(fd);
}

ino_t LossyDisk::NumberOf(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return 0;
  if (!kept_.contains(facts.st_ino)) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    PHIMAP_CHECK(fd >= 0);
    kept_[facts.st_ino] = fd;
  }
  return facts.st_ino;
}

void LossyDisk::SyncFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  image_.contents[NumberOf(path)] = std::make_shared<const std::string>(
      std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void LossyDisk::SyncDirectory(const std::string& path) {
  std::map<std::string, ino_t>& entries = image_.directories[fs::path(path).lexically_normal()];
  entries.clear();
  for (const auto& entry : fs::directory_iterator(path)) {
    // SQLite rebuilds the index of its log, the -shm file, after a crash, so that file is not kept.
    if (absl::EndsWith(entry.path().string(), "-shm")) continue;
    entries[entry.path().filename()] = NumberOf(entry.path());
  }
}

void LossyDisk::Follow(const std::string& operation, const std::string& path) {
  const bool is_log = absl::EndsWith(path, "-wal") || absl::EndsWith(path, "-journal");
  const bool first = !image_.contents.contains(NumberOf(path));
  if (operation == "fsync" || operation == "sqlite fsync") SyncFile(path);
  if (operation == "fsync directory") SyncDirectory(path);
  if (operation == "sqlite fsync" && is_log && first) SyncDirectory(fs::path(path).parent_path());
  if (operation == "sync file system") {
    SyncDirectory(root_);
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_directory()) SyncDirectory(entry.path());
      if (entry.is_regular_file()) SyncFile(entry.path());
    }
  }
}

void LossyDisk::Restore(const Image& image, const std::string& folder) const {
  RestoreDirectory(image, fs::path(root_).lexically_normal(), folder);
}

void LossyDisk::RestoreDirectory(const Image& image, const std::string& path,
                                 const std::string& folder) const {
  fs::create_directories(folder);
  const auto entries = image.directories.find(path);
  if (entries == image.directories.end()) return;
  for (const auto& [name, number] : entries->second) {
    struct stat facts {};
    PHIMAP_CHECK(fstat(kept_.at(number), &facts) == 0);
    if (S_ISDIR(facts.st_mode)) {
      RestoreDirectory(image, path + "/" + name, folder + "/" + name);
      continue;
    }
    const auto content = image.contents.find(number);
    std::ofstream file(folder + "/" + name, std::ios::binary);
    if (content != image.contents.end()) file << *content->second;
  }
}

}  // namespace phimap
