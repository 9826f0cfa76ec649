// The spectrum of a certificate, drawn for a terminal.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_SPECTRUM_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_SPECTRUM_VIEW_H_

#include <string>

#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

// Plots the eigenvalues, one column each, as shares of the trace on a logarithmic scale, with a
// line for each effective dimension. Lines have at most `width` columns, the first indented by two;
// eigenvalues that do not fit are dropped on the right. Empty without eigenvalues. The size is
// bounded for any numbers.
std::string RenderSpectrum(const v1::Certificate::Spectrum& spectrum, int width);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_SPECTRUM_VIEW_H_
