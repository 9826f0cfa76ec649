// The operations of a store in order, across the file layer and SQLite, and which of them go wrong.
#ifndef PHIMAP_TESTS_SERVER_SQLITE_FAULT_PLAN_H_
#define PHIMAP_TESTS_SERVER_SQLITE_FAULT_PLAN_H_

#include <unistd.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace phimap {

// Behaviour of the operation that was chosen to fail.
enum class Fault {
  kNone,
  kError,       // does nothing and returns the error
  kErrorAfter,  // takes effect and returns the error all the same
  kExit,        // ends the process before it takes effect, as a crash would
};

// Counts operations that change the disk, from 0. Thread-safe.
class FaultPlan {
 public:
  // From now on counts from 0, and operation `index` fails; with `sticky` all later ones too, as
  // far as their names begin with `sticky_prefix`.
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
  // Records only.
  void Disarm() { Arm(Fault::kNone, 0, -1); }

  // Decides how this operation behaves.
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

  // Called after each operation that went well, with its name ("fsync", "sqlite write", …) and the
  // path of its file. Set before there are operations.
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

#endif  // PHIMAP_TESTS_SERVER_SQLITE_FAULT_PLAN_H_
