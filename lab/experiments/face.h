// The rows of the Cornell lecture's demonstration: points of the unit square in two classes; the
// second class draws a face.
#ifndef PHIMAP_LAB_EXPERIMENTS_FACE_H_
#define PHIMAP_LAB_EXPERIMENTS_FACE_H_

#include <cstdint>

#include "core/random/random_stream.h"
#include "lab/examples.h"

namespace phimap::lab {

// The lecture's gen_y: 0 in the eyes and the mouth (its label −1), 1 elsewhere (its label 1).
int32_t FaceClass(double x1, double x2);
// Rows uniform on the unit square, two numbers of the cursor each.
Examples DrawFace(int64_t rows, RandomCursor& random);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_FACE_H_
