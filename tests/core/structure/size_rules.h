// How long a file and a function may be, as a function from texts to violations.
#ifndef PHIMAP_TESTS_CORE_STRUCTURE_SIZE_RULES_H_
#define PHIMAP_TESTS_CORE_STRUCTURE_SIZE_RULES_H_

#include <string>
#include <vector>

namespace phimap::testing {

inline constexpr int kMostFileLines = 500;
inline constexpr int kMostFunctionLines = 40;

// A function of a C++ text: its first line, counted from 1, and the lines from that of its opening
// brace to that of its closing one.
struct FunctionSize {
  int line = 0;
  int lines = 0;
  // Text before the brace.
  std::string head;
};

// All functions with a body of several lines. REQUIRES: the formatter's layout, in which a closing
// brace stands below the beginning of what it closes.
std::vector<FunctionSize> FunctionsOf(const std::string& text);

// One line for each file under `root` (C++ and Python, tests included) that has over kMostFileLines
// lines, and for each function of the product's C++ with over kMostFunctionLines.
std::vector<std::string> SizeViolations(const std::string& root);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_STRUCTURE_SIZE_RULES_H_
