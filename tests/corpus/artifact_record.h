// Writes records of an artifact's contents and features as text that contains every bit of every
// number.
#ifndef PHIMAP_TESTS_CORPUS_ARTIFACT_RECORD_H_
#define PHIMAP_TESTS_CORPUS_ARTIFACT_RECORD_H_

#include <string>

#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"
#include "tests/corpus/corpus_inputs.h"

namespace phimap::testing {

// The form in which rows are given to the engine. The bits of features must not depend on it.
enum class RowForm { kFloat64, kFloat32, kSparse };

// Returns a line for each field of the certificate that is set.
std::string CertificateRecord(const Certificate& certificate);

// Returns the provenance, the shape, the certificate, the features of the inputs and, if the
// mapping has residuals, the residual of each row. Features are hexadecimal digits of the serving
// type, with a line for each row.
std::string ArtifactRecord(const Artifact& artifact, const CorpusInputs& inputs,
                           RowForm form = RowForm::kFloat64);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_ARTIFACT_RECORD_H_
