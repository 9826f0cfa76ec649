// The spectrum of a certificate, drawn for a terminal.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_SPECTRUM_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_SPECTRUM_VIEW_H_

#include <string>

#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

// Plots the eigenvalues, one column each, as shares of the trace on a logarithmic scale; a line for
// each effective dimension follows. The plot has at most `width` columns, and drops the eigenvalues
// that do not fit on the right. Empty if there are no eigenvalues. The length of the text is
// bounded, whatever the numbers are.
std::string RenderSpectrum(const v1::Certificate::Spectrum& spectrum, int width);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_SPECTRUM_VIEW_H_
