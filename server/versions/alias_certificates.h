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

  // Called when the alias has changed: shows what `registry` now knows about it. Call it after each
  // change; if several run at the same time, the last one sees the last change.
  void Refresh(VersionRegistry& registry, absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CertificateMetrics& metrics_;
  // An answer of the registry is shown before another thread asks again.
  Mutex mutex_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_VERSIONS_ALIAS_CERTIFICATES_H_
