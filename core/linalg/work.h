// Cost of computing, in units that have a speed on a machine; for forecasts.
#ifndef PHIMAP_CORE_LINALG_WORK_H_
#define PHIMAP_CORE_LINALG_WORK_H_

namespace phimap {

// Counts are double: they only grow, and cannot overflow.
struct Work {
  // Floating-point operations, additions and multiplications, of matrix products and of solves with
  // many right sides, which run at the vector unit's speed.
  double product_flops = 0;
  // Operations of factorizations and inversions of triangles, which are slower by a constant.
  double factor_flops = 0;
  // Numbers that are computed or read one at a time: kernel values, features, the stream. One rbf
  // value counts as 1.
  double elements = 0;

  double flops() const { return product_flops + factor_flops; }
  // Rough duration in units of one operation of a large product, accurate enough only for shares of
  // a whole: a core does about 50 such operations a nanosecond, and one element in about a
  // nanosecond.
  double weight() const { return product_flops + 1.7 * factor_flops + 50 * elements; }
  Work& operator+=(const Work& other) {
    product_flops += other.product_flops;
    factor_flops += other.factor_flops;
    elements += other.elements;
    return *this;
  }
  friend Work operator+(Work a, const Work& b) { return a += b; }
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_WORK_H_
