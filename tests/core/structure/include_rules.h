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
//  - core/linalg/blas.cc alone includes BLAS and LAPACK;
//  - client/ includes nothing of server/, and of core/ only status and thread;
//  - exchange/ includes nothing of server/ or client/, and of core/ only status, plan, certificate;
//  - core/ and proto/ include nothing of exchange/, server/ or client/, server/ nothing of client/;
//  - a folder of server/ includes only folders before it in the order of dependence, and nothing of
//    server/ itself, whose files put the folders together;
//  - server/kernel alone of server/ includes grpc++;
//  - what serves Transform never reaches core/mapping, core/landmark or core/certificate, through
//  no
//    chain of project headers.
std::vector<std::string> Violations(const Includes& includes);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_STRUCTURE_INCLUDE_RULES_H_
