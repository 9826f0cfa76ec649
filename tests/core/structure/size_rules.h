// Limits on the length of files and functions, and functions that find violations.
#ifndef PHIMAP_TESTS_CORE_STRUCTURE_SIZE_RULES_H_
#define PHIMAP_TESTS_CORE_STRUCTURE_SIZE_RULES_H_

#include <string>
#include <vector>

namespace phimap::testing {

inline constexpr int kMostFileLines = 500;
inline constexpr int kMostFunctionLines = 40;

// A function of a C++ text: its first line, counted from 1, and the number of lines from its
// opening brace to its closing one.
struct FunctionSize {
  int line = 0;
  int lines = 0;
  // The text before the opening brace.
  std::string head;
};

// Returns all functions whose body has several lines. REQUIRES: `text` is formatted by
// clang-format, so that a closing brace has the same indentation as the first line of its function.
std::vector<FunctionSize> FunctionsOf(const std::string& text);

// Returns one line for each file under `root` (C++ and Python, tests included) that has over
// kMostFileLines lines, and for each function of the product's C++ with over kMostFunctionLines.
std::vector<std::string> SizeViolations(const std::string& root);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_STRUCTURE_SIZE_RULES_H_
