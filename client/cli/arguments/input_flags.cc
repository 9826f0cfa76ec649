#include "client/cli/arguments/input_flags.h"

#include "CLI/CLI.hpp"

namespace phimap::cli {

void AddInput(CLI::App& command, InputArguments& input, const char* label_help) {
  // Each --input takes exactly one value, because the word after it may be the NAME.
  command
      .add_option(
          "--input", input.paths,
          "File of rows; its extension determines the format: csv, tsv, npy, svmlight or txt (one "
          "text per line). Files compressed by gzip or zstd are decompressed. Several files, and "
          "patterns such as 'day-*.csv.gz', form one stream. - is standard input and needs "
          "--format")
      ->allow_extra_args(false);
  command.add_option("FILE", input.more_paths, "Short for --input=FILE");
  command
      .add_option("--format", input.format,
                  "Format of the input: csv (with a header), npy, svmlight (sparse rows), or text "
                  "(one per line, for kernels of strings)")
      ->check(CLI::IsMember({"csv", "npy", "svmlight", "text"}));
  command.add_option("--delimiter", input.delimiter,
                     "Delimiter of the cells of a CSV file, such as ';' or tab (default: a comma, "
                     "or a tab in files named .tsv)");
  command.add_option("--text", input.text, "Column of the CSV file whose texts are the examples");
  command.add_option("--label", input.choice.label, label_help);
  command
      .add_option("--exclude", input.choice.exclude,
                  "Column of the CSV file that is not an input; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--zero-based", input.zero_based,
                   "The indices of an svmlight file begin with 0 instead of 1");
}

}  // namespace phimap::cli
