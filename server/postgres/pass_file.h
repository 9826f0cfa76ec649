// The file of passwords that libpq reads by itself, without reporting when it cannot.
#ifndef PHIMAP_SERVER_POSTGRES_PASS_FILE_H_
#define PHIMAP_SERVER_POSTGRES_PASS_FILE_H_

#include <string>

namespace phimap {

// Reason why libpq cannot take a password from the file at `path`, with the remedy, such as "cannot
// open /x: Permission denied"; empty if it can.
std::string PassFileProblem(const std::string& path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_PASS_FILE_H_
