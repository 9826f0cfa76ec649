#include "client/cli/inspect_command.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/certificate_view.h"
#include "client/cli/input_file.h"
#include "client/cli/json_text.h"
#include "core/status/status_macros.h"
#include "exchange/artifact_description.h"

namespace phimap::cli {
namespace {

// The largest artifact there is, as docs/formats.md says.
constexpr size_t kMaxFileBytes = size_t{4} << 30;
constexpr size_t kPieceBytes = size_t{1} << 20;

// The whole file. Memory is taken for bytes that have come, never for what a file claims.
absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(path));
  std::string bytes;
  std::string piece(kPieceBytes, '\0');
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const size_t size, file->Read(piece.data(), piece.size()));
    if (size == 0) return bytes;
    if (size > kMaxFileBytes - bytes.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          file->name(), " has more than the ", kMaxFileBytes, " bytes that an artifact may have"));
    }
    bytes.append(piece, 0, size);
  }
}

absl::Status Inspect(const InspectArguments& arguments, int width, std::ostream& out) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(arguments.input));
  bool ran = false;
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, DescribeArtifact(bytes, ran));
  if (arguments.json) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(version));
    out << text;
    return absl::OkStatus();
  }
  out << RenderArtifact(arguments.input, version, ran, width);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunInspect(const InspectArguments& arguments, int width, std::ostream& out) {
  try {
    return Inspect(arguments, width, out);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is not enough memory to look into ", arguments.input));
  }
}

}  // namespace phimap::cli
