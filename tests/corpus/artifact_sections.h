// The bytes of an artifact without its certificate.
#ifndef PHIMAP_TESTS_CORPUS_ARTIFACT_SECTIONS_H_
#define PHIMAP_TESTS_CORPUS_ARTIFACT_SECTIONS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap::testing {

// Returns the SHA-256 of what an artifact computes and where it comes from: for each section of
// kind 1 to 4 and 6 (provenance, input, features, projection, column names), in this order, its
// kind, its size and its bytes. Reads the section table by itself, as docs/formats.md describes it,
// and ignores the certificate and kinds of section that 0.1 did not have. REQUIRES: the artifact is
// whole.
std::string SectionsDigest(absl::string_view artifact);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_ARTIFACT_SECTIONS_H_
