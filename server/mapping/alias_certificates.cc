#include "server/mapping/alias_certificates.h"

#include "server/registry/reference.h"

namespace phimap {
namespace {

std::optional<double> Relative(double error, double scale) {
  return scale > 0 ? error / scale : error;
}

}  // namespace

CertificateFigures FiguresOf(const Certificate& certificate) {
  CertificateFigures figures;
  if (certificate.landmarks > 0) figures.landmarks = static_cast<double>(certificate.landmarks);
  if (certificate.rank) figures.rank = static_cast<double>(*certificate.rank);
  figures.trace_residual = certificate.trace_residual;
  figures.held_out_trace_residual = certificate.held_out_trace_residual;
  if (const auto& error = certificate.kernel_error) {
    figures.kernel_error_mean = Relative(error->mean, error->scale);
    figures.kernel_error_max = Relative(error->max, error->scale);
  }
  if (const auto& error = certificate.serving_error) {
    figures.serving_error_mean = Relative(error->mean, error->scale);
    figures.serving_error_max = Relative(error->max, error->scale);
  }
  figures.mean_squared_norm = certificate.mean_squared_norm;
  return figures;
}

void AliasCertificates::Refresh(VersionRegistry& registry, absl::string_view mapping,
                                absl::string_view alias) {
  MutexLock lock(&mutex_);
  const VersionHandle version =
      registry.FindLive(Reference{.mapping = mapping, .number = std::nullopt, .alias = alias});
  if (!version) return metrics_.Hide(mapping, alias);
  const absl::StatusOr<Certificate> certificate = DecodeCertificate(version.certificate());
  // The certificate is not damaged, because the artifact matches its digest. A later release may
  // have written a certificate that this one cannot read.
  if (!certificate.ok()) return metrics_.Hide(mapping, alias);
  metrics_.Show(mapping, alias, version.record().number, FiguresOf(*certificate));
}

}  // namespace phimap
