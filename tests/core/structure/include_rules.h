// Rules about which file may include which other file. Violations() checks them.
#ifndef PHIMAP_TESTS_CORE_STRUCTURE_INCLUDE_RULES_H_
#define PHIMAP_TESTS_CORE_STRUCTURE_INCLUDE_RULES_H_

#include <map>
#include <string>
#include <vector>

namespace phimap::testing {

// Maps the path of each source file, relative to the root of the repository, to the names in its
// #include lines.
using Includes = std::map<std::string, std::vector<std::string>>;

// Returns the names in the #include lines of a C++ text, quoted or in angle brackets.
std::vector<std::string> IncludesOf(const std::string& text);

// Returns the includes of all .h and .cc files in the folders core, server, client, proto, lab,
// bench and tests of `root`.
Includes IncludesUnder(const std::string& root);

// Returns one line for each include that breaks one of these rules:
//  - core/ includes nothing of gRPC, protobuf, SQLite, PostgreSQL, Prometheus or the generated API;
//  - a folder of core/ includes only folders before it in the order of dependence;
//  - the same rule applies to the folders of core/mapping, and no file is directly in core/mapping;
//  - only core/linalg/blas.cc includes BLAS and LAPACK;
//  - client/ includes nothing of server/, and of core/ only status, thread and digest;
//  - a folder of client/ includes only folders before it in the order of dependence;
//  - proto/ includes nothing of server/ or client/, and of core/ only what describes an artifact;
//  - core/ includes nothing of proto/, server/ or client/, server/ nothing of client/;
//  - a folder of server/ includes only folders before it in the order of dependence, and none of
//    the files directly in server/, which put the folders together;
//  - in server/, only server/kernel_client includes grpc++;
//  - the product includes nothing of lab/, bench/ and tests/, and only tests include tests/;
//  - lab/ includes nothing of server/ or bench/; its order of dependence is lab/letter, the files
//    directly in lab/, lab/experiments;
//  - bench/ includes nothing of lab/ or client/cli/;
//  - tests/support includes no project folder except core/ and itself; tests/core includes nothing
//    of server/ or client/, and tests/client nothing of server/;
//  - the code that serves Transform never reaches core/mapping, core/landmark or core/certificate,
//    through any chain of project headers;
//  - no files include each other in a cycle.
std::vector<std::string> Violations(const Includes& includes);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_STRUCTURE_INCLUDE_RULES_H_
