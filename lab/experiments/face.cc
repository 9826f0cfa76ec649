#include "lab/experiments/face.h"

#include <cmath>

namespace phimap::lab {

int32_t FaceClass(double x1, double x2) {
  if (std::hypot(x1 - 0.25, x2 - 0.75) < 0.15) return 0;
  if (std::hypot(x1 - 0.75, x2 - 0.75) < 0.15) return 0;
  const bool is_mouth =
      x2 < 0.4 && std::hypot(x1 - 0.5, x2 - 0.6) < 0.5 && std::hypot(x1 - 0.5, x2 - 0.55) > 0.3;
  return is_mouth ? 0 : 1;
}

Examples DrawFace(int64_t rows, RandomCursor& random) {
  Examples face{.rows = Matrix<double>::Uninit(rows, 2)};
  for (int64_t i = 0; i < rows; ++i) {
    face.rows(i, 0) = random.UniformOpen01();
    face.rows(i, 1) = random.UniformOpen01();
    face.labels.push_back(FaceClass(face.rows(i, 0), face.rows(i, 1)));
  }
  return face;
}

}  // namespace phimap::lab
