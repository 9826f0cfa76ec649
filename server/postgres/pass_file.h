// Checks the password file that libpq reads by itself. When libpq cannot use the file, it does not
// report that.
#ifndef PHIMAP_SERVER_POSTGRES_PASS_FILE_H_
#define PHIMAP_SERVER_POSTGRES_PASS_FILE_H_

#include <string>

namespace phimap {

// Returns why libpq cannot take a password from the file at `path`, with the remedy, such as
// "cannot open /x: Permission denied". Returns an empty string if it can.
std::string PassFileProblem(const std::string& path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_PASS_FILE_H_
