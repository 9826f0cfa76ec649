// `phimap inspect`: the content of an exported file, without a server.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/files/input_file.h"
#include "core/status/status_macros.h"
#include "proto/artifact/artifact_description.h"

namespace phimap::cli {
namespace {

struct InspectArguments {
  // A path, or "-" for standard input.
  std::string input;
  bool json = false;
};

constexpr size_t kPieceBytes = size_t{1} << 20;

// Reads until `bytes` has `size` bytes or the file ends. Memory is allocated for bytes that were
// read, never for a size that the file claims.
absl::Status ReadUpTo(size_t size, InputFile& file, std::string& bytes) {
  std::string piece(std::min(size, kPieceBytes), '\0');
  while (bytes.size() < size) {
    const size_t wanted = std::min(size - bytes.size(), piece.size());
    PHIMAP_ASSIGN_OR_RETURN(const size_t came, file.Read(piece.data(), wanted));
    if (came == 0) return absl::OkStatus();
    bytes.append(piece, 0, came);
  }
  return absl::OkStatus();
}

// Reads the whole file if it begins like an artifact, whose head also states its size.
absl::StatusOr<std::string> ReadArtifact(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(path));
  std::string bytes;
  PHIMAP_RETURN_IF_ERROR(ReadUpTo(kArtifactStartBytes, *file, bytes));
  if (bytes.size() < kArtifactStartBytes) return bytes;  // DescribeArtifact will refuse it.
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size, DescribeSize(bytes));
  PHIMAP_RETURN_IF_ERROR(ReadUpTo(static_cast<size_t>(size) + 1, *file, bytes));
  if (static_cast<int64_t>(bytes.size()) <= size) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(file->name(), ": the artifact's head states ",
                                                 size, " bytes, but the file has more"));
}

absl::Status Inspect(const InspectArguments& arguments, int width, std::ostream& out) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, ReadArtifact(arguments.input));
  bool ran = false;
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, DescribeArtifact(bytes, ran));
  if (arguments.json) return PrintJson(version, out);
  out << RenderArtifact(arguments.input, version, ran, width);
  return absl::OkStatus();
}

// Checks an artifact as an import does, including its reference vectors, and prints it: as text
// that is `width` characters wide, or as the JSON of a Version without a name. DATA_LOSS for a file
// that is damaged or is not an artifact.
absl::Status RunInspect(const InspectArguments& arguments, int width, std::ostream& out) {
  try {
    return Inspect(arguments, width, out);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is not enough memory to inspect ", arguments.input));
  }
}

}  // namespace

Command AddInspect(CLI::App& app) {
  auto arguments = std::make_shared<InspectArguments>();
  InspectArguments& inspect = *arguments;
  CLI::App* command = app.add_subcommand(
      "inspect", "Check an exported file and show its content, without a server");
  command->add_option("FILE", inspect.input, "Exported file; - is standard input")->required();
  command->add_flag("--json", inspect.json,
                    "Print the content as JSON, as a version that has no name");
  return {.app = command,
          .run_locally =
              [arguments](LocalContext& context) {
                return RunInspect(*arguments, context.console.width, context.out);
              },
          .json = &inspect.json};
}

}  // namespace phimap::cli
