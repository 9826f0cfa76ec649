// A certificate as a message, for a server that answers and for a command that reads a file.
#ifndef PHIMAP_EXCHANGE_CERTIFICATE_TO_PROTO_H_
#define PHIMAP_EXCHANGE_CERTIFICATE_TO_PROTO_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/plan/rows.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// What the certificate's golden vectors have the shape of.
struct VersionShape {
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  // Golden rows are what a Transform takes; those of a kernel service are its answers, which nobody
  // sends.
  bool golden_rows_are_examples = true;
};

// Whether the kernel of this text is a user's own service.
bool IsServiceKernel(absl::string_view kernel_text);

void CertificateToProto(const Certificate& certificate, const VersionShape& shape,
                        v1::Certificate* out);

}  // namespace phimap

#endif  // PHIMAP_EXCHANGE_CERTIFICATE_TO_PROTO_H_
