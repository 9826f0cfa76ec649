#include "tests/core/structure/size_rules.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace phimap::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::array<absl::string_view, 7> kProduct = {"core", "proto", "server", "client",
                                                       "lab",  "bench", "tests"};

size_t IndentOf(absl::string_view line) {
  return line.size() - absl::StripLeadingAsciiWhitespace(line).size();
}

// Whether `head`, the text before an opening brace, begins a namespace or a type. Then members
// follow the brace, and not statements.
bool OpensScope(absl::string_view head) {
  for (absl::string_view word : {"namespace", "class", "struct", "union", "extern \"C\""}) {
    if (absl::StartsWith(head, word)) return true;
  }
  // A class template.
  return absl::StartsWith(head, "template") &&
         (absl::StrContains(head, "> class ") || absl::StrContains(head, "> struct "));
}

// Whether `head` begins a function (and not a list of numbers, an enum or a stored lambda).
bool OpensFunction(absl::string_view head) {
  return absl::StrContains(head, '(') && !absl::StrContains(head, " = ") &&
         !absl::StartsWith(head, "enum");
}

// Whether the statement on this line, if any, ends here.
bool EndsStatement(absl::string_view line) {
  return line.empty() || line[0] == '#' || absl::StartsWith(line, "//") ||
         absl::EndsWith(line, ";") || absl::EndsWith(line, "}") || absl::EndsWith(line, "{") ||
         absl::EndsWith(line, "public:") || absl::EndsWith(line, "private:") ||
         absl::EndsWith(line, "protected:");
}

std::string TextOf(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<FunctionSize> FunctionsOf(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::vector<FunctionSize> functions;
  FunctionSize next;
  size_t indent = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const absl::string_view line = absl::StripTrailingAsciiWhitespace(lines[i]);
    const absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
    if (next.head.empty()) {
      next.line = static_cast<int>(i) + 1;
      indent = IndentOf(line);
    }
    const bool opens = absl::EndsWith(words, "{") && !absl::StartsWith(words, "//");
    if (!EndsStatement(words) || opens)
      absl::StrAppend(&next.head, next.head.empty() ? "" : " ", words);
    if (!EndsStatement(words)) continue;
    if (opens && !OpensScope(next.head)) {
      // Skip the body.
      const size_t begin = i;
      const std::string closing = absl::StrCat(std::string(indent, ' '), "}");
      while (i + 1 < lines.size() && !absl::StartsWith(lines[i], closing)) ++i;
      next.lines = static_cast<int>(i - begin) + 1;
      if (OpensFunction(next.head)) functions.push_back(next);
    }
    next = FunctionSize();
  }
  return functions;
}

std::vector<std::string> SizeViolations(const std::string& root) {
  std::vector<std::string> violations;
  for (const absl::string_view folder : kProduct) {
    const fs::path top = fs::path(root) / std::string(folder);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      const std::string extension = entry.path().extension().string();
      const bool is_cpp = extension == ".h" || extension == ".cc";
      if (!entry.is_regular_file() || (!is_cpp && extension != ".py")) continue;
      const std::string file = fs::relative(entry.path(), root).generic_string();
      const std::string text = TextOf(entry.path());
      const auto lines = std::count(text.begin(), text.end(), '\n');
      if (lines > kMostFileLines) violations.push_back(absl::StrCat(file, ": ", lines, " lines"));
      if (!is_cpp || folder == "tests") continue;
      for (const FunctionSize& function : FunctionsOf(text)) {
        if (function.lines <= kMostFunctionLines) continue;
        violations.push_back(absl::StrCat(file, ":", function.line, ": ", function.lines,
                                          " lines: ", function.head));
      }
    }
  }
  return violations;
}

}  // namespace phimap::testing
