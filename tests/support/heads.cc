#include "tests/support/heads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/head/report.h"
#include "core/plan/artifact.h"
#include "core/status/check.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {

Head MakeHead(const HeadShape& shape) {
  Head head;
  const bool of_classes = shape.classes > 0;
  const int64_t scores = shape.classes > 2 ? shape.classes : 1;
  head.task = of_classes ? HeadTask::kClasses : HeadTask::kNumbers;
  head.learner_text = of_classes ? "logistic(C=1)" : "ridge(alpha=0.5)";
  head.features_digest = std::string(64, 'a');
  for (int64_t c = 0; c < shape.classes; ++c) head.classes.push_back(absl::StrCat("class ", c));
  head.weights = UniformRows({.rows = shape.features, .cols = scores, .seed = shape.seed});
  const Matrix<double> b = UniformRows({.rows = 1, .cols = scores, .seed = shape.seed + 1000});
  head.intercepts.assign(b.data(), b.data() + scores);
  head.folded = shape.folded;
  if (of_classes) {
    head.link = {shape.classes == 2 ? Link::Kind::kPlatt : Link::Kind::kTemperature, 2.5, 0.25};
  }
  const Matrix<double> distances =
      UniformRows({.rows = 1, .cols = shape.calibration_rows, .seed = shape.seed + 2000});
  for (int64_t i = 0; i < shape.calibration_rows; ++i) {
    head.calibration.scores.push_back(std::abs(distances(0, i)));
    if (of_classes) head.calibration.classes.push_back(static_cast<int32_t>(i % shape.classes));
  }
  std::sort(head.calibration.scores.begin(), head.calibration.scores.end());
  if (shape.variance) {
    const int64_t d = shape.features;
    head.variance = {.noise = 0.5, .scale = 3, .inverse_factor = {}};
    head.variance.inverse_factor = AlignedArray<double>(d * (d + 1) / 2);
    double* element = head.variance.inverse_factor.data();
    for (int64_t k = 0; k < d; ++k) {
      for (int64_t j = k; j < d; ++j) *element++ = k == j ? 1 : 0.125 * static_cast<double>(j - k);
    }
  }
  head.report = EncodeReport({.notes = {"made up"}});
  PHIMAP_CHECK(head.Validate(shape.features).ok());
  return head;
}

std::string MustWithHead(const std::string& artifact, Head head) {
  head.features_digest = FeaturesDigest(artifact).value();
  return WithHead(artifact, EncodeHead(head), EncodeVariance(head.variance)).value();
}

}  // namespace phimap::testing
