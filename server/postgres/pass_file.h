// The file of passwords that libpq reads by itself, and says nothing of when it cannot.
#ifndef PHIMAP_SERVER_POSTGRES_PASS_FILE_H_
#define PHIMAP_SERVER_POSTGRES_PASS_FILE_H_

#include <string>

namespace phimap {

// Why libpq takes no password from the file at `path`, with what to do, as in "cannot open /x:
// Permission denied"; empty if it can be read.
std::string PassFileProblem(const std::string& path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_PASS_FILE_H_
