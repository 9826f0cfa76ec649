// Shows the certificates of the versions that aliases point to among the metrics.
//
// An alias is shown from when its version is in memory, with its certificate: no artifact is read
// for this.
#ifndef PHIMAP_SERVER_VERSIONS_ALIAS_CERTIFICATES_H_
#define PHIMAP_SERVER_VERSIONS_ALIAS_CERTIFICATES_H_

#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "server/observe/certificate_metrics.h"
#include "server/registry/version_registry.h"
#include "server/sync/mutex.h"

namespace phimap {

// Errors relative to their scale.
CertificateFigures FiguresOf(const Certificate& certificate);

// Thread-safe.
class AliasCertificates {
 public:
  // `metrics` outlives it.
  explicit AliasCertificates(CertificateMetrics& metrics) : metrics_(metrics) {}

  // Something has become of the alias: shows what `registry` says of it now. Call it after each
  // change; of several at a time the last to run sees the last change.
  void Refresh(VersionRegistry& registry, absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CertificateMetrics& metrics_;
  // What was asked of the registry is shown before anybody asks again.
  Mutex mutex_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_VERSIONS_ALIAS_CERTIFICATES_H_
