// Runs the programs of liblinear and libsvm on the rows of a test.
#ifndef PHIMAP_TESTS_CORE_LEARN_SVM_TOOL_H_
#define PHIMAP_TESTS_CORE_LEARN_SVM_TOOL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/learn/labeled_data.h"

namespace phimap::testing {

// A temporary folder, which is removed together with this object.
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

// Writes a line "LABEL index:value …" for each row, with every digit of its values. Two classes are
// labeled −1 and 1, more classes 0 … L−1. A target is written as it is.
void WriteSvmFile(const LabeledRows& rows, const std::string& path);
// Runs a command line and hides its output. The test fails if the command fails.
void MustRun(const std::string& command);
// Returns the lines of a file.
std::vector<std::string> LinesOf(const std::string& path);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_LEARN_SVM_TOOL_H_
