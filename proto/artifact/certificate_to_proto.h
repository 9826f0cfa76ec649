// Converts a certificate to a message, for servers and for commands that read a file.
#ifndef PHIMAP_PROTO_ARTIFACT_CERTIFICATE_TO_PROTO_H_
#define PHIMAP_PROTO_ARTIFACT_CERTIFICATE_TO_PROTO_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/plan/rows.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// The shape of a version, by which its reference vectors are divided into rows.
struct VersionShape {
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  // Whether the rows of the reference vectors are inputs of Transform. For a remote kernel they are
  // a service's answers, which clients do not send.
  bool reference_rows_are_examples = true;
};

// Returns whether a user's own service computes the kernel with this text.
bool IsServiceKernel(absl::string_view kernel_text);

void CertificateToProto(const Certificate& certificate, const VersionShape& shape,
                        v1::Certificate* out);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ARTIFACT_CERTIFICATE_TO_PROTO_H_
