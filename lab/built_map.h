// A mapping that is built and applied in this process, in the same way as on a server.
#ifndef PHIMAP_LAB_BUILT_MAP_H_
#define PHIMAP_LAB_BUILT_MAP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/engine/engine.h"
#include "core/linalg/matrix.h"

namespace phimap::lab {

// A mapping to build, in phimap's text syntax.
struct MapText {
  // "f2(landmarks=10, policy=given)"
  std::string mapping;
  // "rbf(gamma=0.5)", or "precomputed()"
  std::string kernel;
  bool standardize = false;
};

// Thread-safe.
class BuiltMap {
 public:
  // Streams the rows, builds the version with its certificate, and loads the artifact's bytes into
  // an engine. Returns the errors of the build. With policy `given`, the first rows are the
  // landmarks. Otherwise the landmarks are drawn from the stream, and a tenth of the stream is held
  // out for the certificate.
  static absl::StatusOr<BuiltMap> Build(const MapText& text, ConstMatrixView<double> stream,
                                        uint64_t seed);

  // Returns the served features, converted to float64: n×output_columns for n×p rows.
  absl::StatusOr<Matrix<double>> Map(ConstMatrixView<double> rows) const;
  int64_t output_columns() const { return engine_->output_columns(); }
  const Certificate& certificate() const { return certificate_; }
  const Engine& engine() const { return *engine_; }

 private:
  BuiltMap() = default;

  Certificate certificate_;
  std::unique_ptr<const Engine> engine_;
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_BUILT_MAP_H_
