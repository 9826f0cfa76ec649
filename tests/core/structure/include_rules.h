// Which file may include what: the layout of the code, as a function from includes to violations.
#ifndef PHIMAP_TESTS_CORE_STRUCTURE_INCLUDE_RULES_H_
#define PHIMAP_TESTS_CORE_STRUCTURE_INCLUDE_RULES_H_

#include <map>
#include <string>
#include <vector>

namespace phimap::testing {

// Path of a source file, from the root of the repository, to what its #include lines name.
using Includes = std::map<std::string, std::vector<std::string>>;

// The #include lines of a C++ text, quoted or in angle brackets.
std::vector<std::string> IncludesOf(const std::string& text);

// All .h and .cc files below the folders of `root` that hold the product's C++.
Includes IncludesUnder(const std::string& root);

// One line for each include that breaks a rule:
//  - core/ names nothing of gRPC, protobuf, SQLite, PostgreSQL, Prometheus or the generated API;
//  - a folder of core/ includes only folders before it in the order of dependence;
//  - so does a folder of core/mapping, which has no files of its own;
//  - core/linalg/blas.cc alone includes BLAS and LAPACK;
//  - client/ includes nothing of server/, and of core/ only status, thread and digest;
//  - a folder of client/ includes only folders before it in the order of dependence;
//  - proto/ includes nothing of server/ or client/, and of core/ only what describes an artifact;
//  - core/ includes nothing of proto/, server/ or client/, server/ nothing of client/;
//  - a folder of server/ includes only folders before it in the order of dependence, and nothing of
//    server/ itself, whose files put the folders together;
//  - server/kernel_client alone of server/ includes grpc++;
//  - the product includes nothing of lab/, bench/ and tests/, and only tests include tests/;
//  - lab/ includes nothing of server/ or bench/; its folders are ordered: letter, lab/ itself,
//    experiments;
//  - bench/ includes nothing of lab/ or client/cli/; tests/support rests on core/ alone, and so do
//    the tests of core/; those of client/ include nothing of server/;
//  - what serves Transform never reaches core/mapping, core/landmark or core/certificate, through
//    no chain of project headers;
//  - no files include each other in a circle.
std::vector<std::string> Violations(const Includes& includes);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_STRUCTURE_INCLUDE_RULES_H_
