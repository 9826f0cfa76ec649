// The programs that come with liblinear and libsvm, on rows of ours.
#ifndef PHIMAP_TESTS_CORE_LEARN_SVM_TOOL_H_
#define PHIMAP_TESTS_CORE_LEARN_SVM_TOOL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/learn/labeled_data.h"

namespace phimap::testing {

// A folder of the test's own, which goes with it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// "LABEL index:value …" a row, with every digit; two classes are labeled −1 and 1, more 0 … L−1.
void WriteSvmFile(const LabeledRows& rows, const std::string& path);
// Runs a command line without output; fails the test when it fails.
void MustRun(const std::string& command);
// The lines of a file.
std::vector<std::string> LinesOf(const std::string& path);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_LEARN_SVM_TOOL_H_
