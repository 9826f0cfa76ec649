// Contents and answers of an artifact of the corpus, as text with every bit of every number.
#ifndef PHIMAP_TESTS_CORPUS_ARTIFACT_RECORD_H_
#define PHIMAP_TESTS_CORPUS_ARTIFACT_RECORD_H_

#include <string>

#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"
#include "tests/corpus/corpus_inputs.h"

namespace phimap::testing {

// How the rows of the inputs come; the bits of features must not depend on it.
enum class RowForm { kFloat64, kFloat32, kSparse };

// A line for each field that is there.
std::string CertificateRecord(const Certificate& certificate);

// Provenance, shape, certificate, the features of the inputs in hexadecimal digits of the serving
// type, a row on each line, and the residual of each row where the mapping has one.
std::string ArtifactRecord(const Artifact& artifact, const CorpusInputs& inputs,
                           RowForm form = RowForm::kFloat64);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_ARTIFACT_RECORD_H_
