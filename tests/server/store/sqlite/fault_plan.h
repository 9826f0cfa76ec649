// Records the operations of a store in order, across the file layer and SQLite, and decides which
// of them fail.
#ifndef PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULT_PLAN_H_
#define PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULT_PLAN_H_

#include <unistd.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace phimap {

// How an operation fails if it is chosen to fail.
enum class Fault {
  kNone,
  kError,       // has no effect, and returns an error
  kErrorAfter,  // takes effect, but returns an error all the same
  kExit,        // ends the process before taking effect, like a crash
};

// Counts the operations that change the disk, beginning with 0. Thread-safe.
class FaultPlan {
 public:
  // Counts operations from 0 again, and makes operation `index` fail. With `sticky`, all later
  // operations whose names begin with `sticky_prefix` fail, too.
  void Arm(Fault fault, int error_number, int index, bool sticky = false,
           const std::string& sticky_prefix = "") {
    std::lock_guard<std::mutex> lock(mutex_);
    fault_ = fault;
    error_number_ = error_number;
    index_ = index;
    sticky_ = sticky;
    sticky_prefix_ = sticky_prefix;
    operations_.clear();
  }
  // From now on only records operations.
  void Disarm() { Arm(Fault::kNone, 0, -1); }

  // Records an operation, and decides how it behaves.
  Fault Step(const std::string& operation) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int index = static_cast<int>(operations_.size());
    operations_.push_back(operation);
    const bool chosen =
        fault_ != Fault::kNone &&
        (index == index_ || (sticky_ && index > index_ && operation.rfind(sticky_prefix_, 0) == 0));
    if (chosen && fault_ == Fault::kExit) ::_exit(kExitStatus);
    return chosen ? fault_ : Fault::kNone;
  }

  // Called after each successful operation, with the operation's name ("fsync", "sqlite write", …)
  // and the path of the file. Must be set before the first operation.
  std::function<void(const std::string& operation, const std::string& path)> after;

  int error_number() const { return error_number_; }
  std::vector<std::string> operations() {
    std::lock_guard<std::mutex> lock(mutex_);
    return operations_;
  }
  bool reached() { return index_ >= 0 && static_cast<int>(operations().size()) > index_; }

  static constexpr int kExitStatus = 77;

 private:
  std::mutex mutex_;
  Fault fault_ = Fault::kNone;
  int error_number_ = 0;
  int index_ = -1;
  bool sticky_ = false;
  std::string sticky_prefix_;
  std::vector<std::string> operations_;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULT_PLAN_H_
