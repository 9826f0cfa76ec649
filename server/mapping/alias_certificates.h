// Exports the certificates of the versions that aliases point to as metrics.
//
// An alias is shown once its version is in memory, which includes the certificate. So no artifact
// is read only for these metrics.
#ifndef PHIMAP_SERVER_MAPPING_ALIAS_CERTIFICATES_H_
#define PHIMAP_SERVER_MAPPING_ALIAS_CERTIFICATES_H_

#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/thread/mutex.h"
#include "server/observe/certificate_metrics.h"
#include "server/registry/version_registry.h"

namespace phimap {

// Returns a certificate's figures. Their errors are relative, as CertificateFigures says.
CertificateFigures FiguresOf(const Certificate& certificate);

// Thread-safe.
class AliasCertificates {
 public:
  // `metrics` must outlive this object.
  explicit AliasCertificates(CertificateMetrics& metrics) : metrics_(metrics) {}

  // Called when the alias has changed. Shows what `registry` now knows about the alias. If several
  // calls run at the same time, the last one sees the last change.
  void Refresh(VersionRegistry& registry, absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CertificateMetrics& metrics_;
  // Held until an answer of the registry is shown, so that no other thread asks in between.
  Mutex mutex_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_ALIAS_CERTIFICATES_H_
