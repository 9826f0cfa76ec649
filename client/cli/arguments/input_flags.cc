#include "client/cli/arguments/input_flags.h"

#include "CLI/CLI.hpp"

namespace phimap::cli {

void AddInput(CLI::App& command, InputArguments& input, const char* label_help) {
  // Takes one value per occurrence, because the next word may be the NAME.
  command
      .add_option("--input", input.paths,
                  "File of rows; its extension names the format: csv, tsv, npy, svmlight or txt "
                  "(one text per line). gzip and zstd are recognised. Several files, and patterns "
                  "such as 'day-*.csv.gz', form one stream. - is standard input and needs --format")
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
  command.add_option("--text", input.text,
                     "Column of the CSV file that holds texts, which are the examples");
  command.add_option("--label", input.choice.label, label_help);
  command
      .add_option("--exclude", input.choice.exclude,
                  "Column of the CSV file that is not an input; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--zero-based", input.zero_based,
                   "The indices of an svmlight file begin with 0 instead of 1");
}

}  // namespace phimap::cli
