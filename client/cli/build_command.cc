#include "client/cli/build_command.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/certificate_view.h"
#include "client/cli/file_format.h"
#include "client/cli/json_text.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

absl::StatusOr<uint64_t> SeedOf(const std::string& text) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(text, &seed)) return seed;
  return absl::InvalidArgumentError(absl::StrCat("--seed: expected an integer from 0 to ",
                                                 std::numeric_limits<uint64_t>::max(), ", got '",
                                                 text, "'"));
}

}  // namespace

absl::Status RunBuild(const BuildArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(arguments.seed));
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat format,
                          FormatOf(arguments.input, arguments.format, "--format"));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::RowSource> rows,
                          OpenRows(arguments.input, format, arguments.label));
  const client::BuildOptions options{.mapping = arguments.name,
                                     .mapping_text = arguments.mapping,
                                     .kernel_text = arguments.kernel,
                                     .standardize = arguments.standardize,
                                     .seed = seed};
  absl::StatusOr<v1::Version> version;
  {
    ProgressBar bar(context.console);
    const auto show = [&](const client::BuildProgress& progress) {
      bar.Update(StateOf(progress, arguments.name, rows->row_count()));
    };
    version = context.client.Build(options, *rows, show, &context.cancel);
  }
  PHIMAP_RETURN_IF_ERROR(version.status());
  if (arguments.json) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(*version));
    context.out << text;
  } else {
    context.out << RenderVersion(*version, context.console.width);
  }
  return absl::OkStatus();
}

}  // namespace phimap::cli
