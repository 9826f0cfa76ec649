// Judges whether a certificate's reference vectors can show anything.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_REFERENCE_VECTORS_H_
#define PHIMAP_CLIENT_CLI_VIEWS_REFERENCE_VECTORS_H_

#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

// Whether all features of the reference vectors are 0, in which case equal bits show nothing. Early
// releases could build such versions under a kernel that is 0 far from the landmarks. Pure.
bool SelfCheckIsAllZero(const v1::SelfCheck& check);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_REFERENCE_VECTORS_H_
