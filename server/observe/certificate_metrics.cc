#include "server/observe/certificate_metrics.h"

#include "absl/strings/str_cat.h"
#include "server/observe/series.h"

namespace phimap {

std::array<CertificateMetrics::Figure, CertificateMetrics::kFigures> CertificateMetrics::Families(
    prometheus::Registry& registry) {
  const auto family = [&registry](const char* name, const char* help) {
    return &prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  };
  auto* const kernel_error =
      family("phimap_certificate_kernel_error_ratio",
             "|K(x,y) - F(x)F(y)| on held-out rows, over the largest K(x,x).");
  auto* const serving_error =
      family("phimap_certificate_serving_error_ratio",
             "|F(x) - exact F(x)| on held-out rows, over the largest |F(x)|.");
  return {{{family("phimap_certificate_landmarks", "Landmarks the version was built from."), "",
            &CertificateFigures::landmarks},
           {family("phimap_certificate_rank", "Landmarks that are numerically independent."), "",
            &CertificateFigures::rank},
           {family("phimap_certificate_trace_residual_ratio",
                   "Share of the trace of the landmarks' Gram matrix that is lost."),
            "", &CertificateFigures::trace_residual},
           {family("phimap_certificate_held_out_trace_residual_ratio",
                   "Residual mass: share of the sum of K(x,x) on held-out rows outside the "
                   "landmarks' span."),
            "", &CertificateFigures::held_out_trace_residual},
           {kernel_error, "mean", &CertificateFigures::kernel_error_mean},
           {kernel_error, "max", &CertificateFigures::kernel_error_max},
           {serving_error, "mean", &CertificateFigures::serving_error_mean},
           {serving_error, "max", &CertificateFigures::serving_error_max},
           {family("phimap_certificate_mean_squared_norm",
                   "Mean of |F(x)|^2 on held-out rows, to compare with that of served rows."),
            "", &CertificateFigures::mean_squared_norm}}};
}

CertificateMetrics::CertificateMetrics(prometheus::Registry& registry)
    : figures_(Families(registry)),
      not_shown_(OneCounter(registry, "phimap_certificates_not_shown_total",
                            "Times that an alias's certificate got no metrics because 100 other "
                            "aliases have them.")) {}

void CertificateMetrics::Show(absl::string_view mapping, absl::string_view alias, int64_t version,
                              const CertificateFigures& figures) {
  MutexLock lock(&mutex_);
  const auto found = shown_.find(Key(mapping, alias));
  if (found != shown_.end()) {
    Remove(found->second);
  } else if (shown_.size() >= kMaxShown) {
    return not_shown_->Increment();
  }
  Shown& shown = shown_[Key(mapping, alias)];
  for (int i = 0; i < kFigures; ++i) {
    const std::optional<double>& value = figures.*figures_[i].value;
    shown[i] = nullptr;
    if (!value.has_value()) continue;
    prometheus::Labels labels = {{"mapping", std::string(mapping)},
                                 {"alias", std::string(alias)},
                                 {"version", absl::StrCat(version)}};
    if (*figures_[i].stat != '\0') labels["stat"] = figures_[i].stat;
    shown[i] = &figures_[i].family->Add(labels);
    shown[i]->Set(*value);
  }
}

void CertificateMetrics::Hide(absl::string_view mapping, absl::string_view alias) {
  MutexLock lock(&mutex_);
  const auto found = shown_.find(Key(mapping, alias));
  if (found == shown_.end()) return;
  Remove(found->second);
  shown_.erase(found);
}

void CertificateMetrics::Remove(const Shown& shown) {
  for (int i = 0; i < kFigures; ++i) {
    if (shown[i] != nullptr) figures_[i].family->Remove(shown[i]);
  }
}

}  // namespace phimap
