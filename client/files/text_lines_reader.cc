#include "client/files/text_lines_reader.h"

#include <utility>

#include "core/status/status_macros.h"
#include "core/status/utf8.h"

namespace phimap::cli {

absl::StatusOr<client::ExampleBlock> TextLinesReader::Next(const client::BlockLimits& limits) {
  client::StringBlock block;
  int64_t bytes = 0;
  std::string line;
  while (static_cast<int32_t>(block.values.size()) < limits.rows && bytes < limits.bytes) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, lines_.Next(line));
    if (!any) break;
    if (!IsUtf8(line)) return lines_.Error("expected text in UTF-8, got bytes that are not UTF-8");
    bytes += static_cast<int64_t>(line.size());
    block.values.push_back(std::move(line));
  }
  return client::ExampleBlock(std::move(block));
}

}  // namespace phimap::cli
