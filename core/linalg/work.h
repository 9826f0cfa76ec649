// Cost of a computation, counted in operations whose speed on a machine is known; for forecasts.
#ifndef PHIMAP_CORE_LINALG_WORK_H_
#define PHIMAP_CORE_LINALG_WORK_H_

namespace phimap {

// Counts are of type double, because counts of operations could overflow an integer.
struct Work {
  // Floating-point additions and multiplications of matrix products, and of solves with many
  // right-hand sides. They run at the vector unit's speed.
  double product_flops = 0;
  // Operations of factorizations and inversions of triangles, which are slower by a constant.
  double factor_flops = 0;
  // Numbers that are computed or read one at a time: kernel values, features, the stream. An rbf
  // value is one element.
  double elements = 0;

  double flops() const { return product_flops + factor_flops; }
  // Rough duration. The unit is the duration of one operation of a large product. In a nanosecond,
  // a core does about 50 such operations, or computes one element. The duration is accurate enough
  // only for shares of a whole.
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
