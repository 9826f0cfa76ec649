// The rows of the Cornell lecture's demonstration: points of the unit square in two classes, which
// form a face.
#ifndef PHIMAP_LAB_EXPERIMENTS_FACE_H_
#define PHIMAP_LAB_EXPERIMENTS_FACE_H_

#include <cstdint>

#include "core/random/random_stream.h"
#include "lab/examples.h"

namespace phimap::lab {

// Returns the class by the lecture's gen_y: 0 in the eyes and the mouth (label −1 there), 1
// elsewhere (label 1).
int32_t FaceClass(double x1, double x2);
// Draws rows that are uniform on the unit square, each from two numbers of the cursor.
Examples DrawFace(int64_t rows, RandomCursor& random);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_FACE_H_
