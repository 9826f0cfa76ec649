#include "client/cli/export_command.h"

#include <memory>
#include <ostream>

#include "client/cli/number_text.h"
#include "client/cli/output_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::Status RunExport(const ExportArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                          OutputFile::Open(arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(
      const client::ExportResult result,
      context.client.Export(
          arguments.reference, [&](absl::string_view bytes) { return file->Append(bytes); },
          &context.cancel));
  PHIMAP_RETURN_IF_ERROR(file->Commit());
  *context.console.stream << result.version.mapping() << "@" << result.version.number() << ": "
                          << SizeText(result.size_bytes) << " to " << file->name() << ", digest "
                          << result.version.digest() << std::endl;
  return absl::OkStatus();
}

}  // namespace phimap::cli
