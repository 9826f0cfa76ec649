#include "core/kernel/kernel_evaluator.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/kernel_evaluator.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must follow foreach_target.h, which includes this file once per target.
#include "core/kernel/fused_block-inl.h"
#include "core/kernel/fused_map-inl.h"
#include "core/kernel/op/all_ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

template <typename T>
void EvaluateBlock(const KernelProgram& program, const KernelBlockOperands<T>& in,
                   const ProductBlock<T>& block, int64_t count, T* const* out, bool* finite) {
  switch (program.shape()) {
    case KernelProgram::Shape::kRbf:
      return MapBlock<RbfMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kPolynomial:
      return MapBlock<PolynomialMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kPhase:
      return MapBlock<PhaseMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kSinCos:
      return MapBlock<SinCosMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kAny:
      PHIMAP_CHECK(false);
  }
}

void EvaluateBlockF32(const KernelProgram& program, const KernelBlockOperands<float>& in,
                      const ProductBlock<float>& block, int64_t count, float* const* out,
                      bool* finite) {
  EvaluateBlock(program, in, block, count, out, finite);
}

void EvaluateBlockF64(const KernelProgram& program, const KernelBlockOperands<double>& in,
                      const ProductBlock<double>& block, int64_t count, double* const* out,
                      bool* finite) {
  EvaluateBlock(program, in, block, count, out, finite);
}

// Runs one operation on a chunk.
template <KernelOpCode kCode, typename T>
HWY_INLINE void RunOp(const KernelOp& op, const KernelOperands<T>& in, int64_t begin, T*& top) {
  const hn::ScalableTag<T> d;
  using Body = OpBody<kCode>;
  constexpr OpArity kArity = OpFacts<kCode>::kArity;
  if constexpr (kArity == OpArity::kPush) {
    top += kChunk;
    Body::Push(op, in, begin, top);
  } else if constexpr (kArity == OpArity::kUnary) {
    for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
      hn::Store(Body::Apply(d, op, hn::Load(d, top + j)), d, top + j);
    }
  } else if constexpr (kArity == OpArity::kBinary) {
    top -= kChunk;
    for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
      hn::Store(Body::Apply(hn::Load(d, top + j), hn::Load(d, top + kChunk + j)), d, top + j);
    }
  } else {
    for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
      auto second = hn::Zero(d);
      hn::Store(Body::Apply(d, op, hn::Load(d, top + j), second), d, top + j);
      hn::Store(second, d, top + kChunk + j);
    }
    top += kChunk;
  }
}

// Runs the operations on elements begin … begin + kChunk − 1. The results are at the bottom of the
// stack.
template <typename T>
void RunChunk(const std::vector<KernelOp>& ops, const KernelOperands<T>& in, int64_t begin,
              T* stack) {
  T* top = stack - kChunk;
  for (const KernelOp& op : ops) {
    switch (op.code) {  // all codes are known: KernelProgram::FromParts rejects others
#define PHIMAP_RUN(NAME, CODE)                     \
  case KernelOpCode::NAME:                         \
    RunOp<KernelOpCode::NAME>(op, in, begin, top); \
    break;
      PHIMAP_KERNEL_OPS(PHIMAP_RUN)
#undef PHIMAP_RUN
    }
  }
}

// A list of operations to run: either the program's, with the program's shape, or a factor's, with
// the shape kAny.
template <typename T>
struct Evaluation {
  const KernelProgram& program;
  const std::vector<KernelOp>& ops;
  KernelProgram::Shape shape;

  // Evaluates elements begin … begin + kChunk − 1 of the operands into out[0 … kChunk − 1], and
  // second results into `second`.
  HWY_INLINE void Run(const KernelOperands<T>& in, int64_t begin, T* stack, T* out,
                      T* second) const {
    switch (ShapeFor(in)) {
      case KernelProgram::Shape::kRbf:
        return RunMap<RbfMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kPolynomial:
        return RunMap<PolynomialMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kPhase:
        return RunMap<PhaseMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kSinCos:
        return RunMap<SinCosMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kAny:
        RunChunk(ops, in, begin, stack);
        std::copy_n(stack, kChunk, out);
        if (ops.back().code == KernelOpCode::kCosSinTurns)
          std::copy_n(stack + kChunk, kChunk, second);
    }
  }

  KernelProgram::Shape ShapeFor(const KernelOperands<T>& in) const {
    const bool lacks = (shape == KernelProgram::Shape::kRbf && in.row_norms == nullptr) ||
                       (shape == KernelProgram::Shape::kPhase && in.offsets == nullptr);
    return lacks ? KernelProgram::Shape::kAny : shape;
  }
};

// Copy of the last operands of a row, padded to a whole chunk because only whole vectors are
// loaded.
template <typename T>
struct PaddedOperands {
  PaddedOperands(const KernelProgram& program, const KernelOperands<T>& in, int64_t begin,
                 int64_t left) {
    const auto copy = [&](const T* from, T* to) {
      if (from == nullptr) return static_cast<const T*>(nullptr);
      std::copy_n(from + begin, left, to);
      std::fill(to + left, to + kChunk, T{0});
      return static_cast<const T*>(to);
    };
    operands = in;
    operands.products = copy(in.products, products);
    operands.row_norms = copy(in.row_norms, norms);
    operands.l1_distances = copy(in.l1_distances, l1_distances);
    operands.offsets = copy(in.offsets, offsets);
    if (in.forms != nullptr) {
      for (size_t m = 0; m < program.form_count(); ++m) {
        form_pointers[m] = copy(in.forms[m], forms + m * kChunk);
      }
      operands.forms = form_pointers;
    }
    if (in.row_factors != nullptr) {
      for (size_t m = 0; m < program.factors().size(); ++m) {
        factor_pointers[m] = copy(in.row_factors[m], factors + m * kChunk);
      }
      operands.row_factors = factor_pointers;
    }
  }

  KernelOperands<T> operands;
  T products[kChunk];
  T norms[kChunk];
  T l1_distances[kChunk];
  T offsets[kChunk];
  T forms[kMaxKernelFormCount * kChunk];
  T factors[kMaxKernelFactors * kChunk];
  const T* form_pointers[kMaxKernelFormCount];
  const T* factor_pointers[kMaxKernelFactors];
};

// Runs the program, or its factor number `factor` if that is ≥ 0.
template <typename T>
void Evaluate(const KernelProgram& program, int factor, const KernelOperands<T>& in, int64_t count,
              T* out) {
  HWY_ALIGN T stack[kMaxKernelStack * kChunk];
  const Evaluation<T> evaluation =
      factor < 0 ? Evaluation<T>{program, program.ops(), program.shape()}
                 : Evaluation<T>{program, program.factors()[static_cast<size_t>(factor)],
                                 KernelProgram::Shape::kAny};
  int64_t begin = 0;
  for (; begin + kChunk <= count; begin += kChunk) {
    evaluation.Run(in, begin, stack, out + begin, out + count + begin);
  }
  if (begin == count) return;
  const PaddedOperands<T> padded(program, in, begin, count - begin);
  T results[2][kChunk];
  evaluation.Run(padded.operands, 0, stack, results[0], results[1]);
  std::copy_n(results[0], count - begin, out + begin);
  if (factor < 0 && program.results() == 2) {
    std::copy_n(results[1], count - begin, out + count + begin);
  }
}

void EvaluateF32(const KernelProgram& program, int factor, const KernelOperands<float>& in,
                 int64_t count, float* out) {
  Evaluate(program, factor, in, count, out);
}

void EvaluateF64(const KernelProgram& program, int factor, const KernelOperands<double>& in,
                 int64_t count, double* out) {
  Evaluate(program, factor, in, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {

HWY_EXPORT(EvaluateF32);
HWY_EXPORT(EvaluateF64);
HWY_EXPORT(EvaluateBlockF32);
HWY_EXPORT(EvaluateBlockF64);

namespace {

void Evaluate(const KernelProgram& program, int factor, const KernelOperands<float>& operands,
              int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(EvaluateF32)(program, factor, operands, count, out);
}
void Evaluate(const KernelProgram& program, int factor, const KernelOperands<double>& operands,
              int64_t count, double* out) {
  HWY_DYNAMIC_DISPATCH(EvaluateF64)(program, factor, operands, count, out);
}

// Returns the operands with which a program gives K(x, x) instead of K(x, a_j).
template <typename T>
KernelOperands<T> SelfOperands(const T* norms, const T* const* forms, const T* const* factors) {
  KernelOperands<T> operands;
  operands.products = norms;
  operands.forms = forms;
  operands.row_factors = factors;
  return operands;
}

}  // namespace

void EvaluateKernel(const KernelProgram& program, const KernelOperands<float>& operands,
                    int64_t count, float* out) {
  Evaluate(program, -1, operands, count, out);
}

void EvaluateKernel(const KernelProgram& program, const KernelOperands<double>& operands,
                    int64_t count, double* out) {
  Evaluate(program, -1, operands, count, out);
}

bool EvaluatesBlocks(const KernelProgram& program) {
  return program.shape() != KernelProgram::Shape::kAny;
}

void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<float>& operands,
                         const ProductBlock<float>& products, int64_t count, float* const* out,
                         bool* finite) {
  HWY_DYNAMIC_DISPATCH(EvaluateBlockF32)(program, operands, products, count, out, finite);
}

void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<double>& operands,
                         const ProductBlock<double>& products, int64_t count, double* const* out,
                         bool* finite) {
  HWY_DYNAMIC_DISPATCH(EvaluateBlockF64)(program, operands, products, count, out, finite);
}

template <typename T>
void EvaluateFactors(const KernelProgram& program, const T* norms, const T* const* forms,
                     int64_t count, T* const* out) {
  const T* made[kMaxKernelFactors] = {};
  for (size_t m = 0; m < program.factors().size(); ++m) {
    Evaluate(program, static_cast<int>(m), SelfOperands(norms, forms, made), count, out[m]);
    made[m] = out[m];
  }
}

template <typename T>
void EvaluateSelf(const KernelProgram& program, const T* norms, const T* const* forms,
                  const T* const* factors, int64_t count, T* out) {
  Evaluate(program, -1, SelfOperands(norms, forms, factors), count, out);
}

template void EvaluateFactors(const KernelProgram&, const float*, const float* const*, int64_t,
                              float* const*);
template void EvaluateFactors(const KernelProgram&, const double*, const double* const*, int64_t,
                              double* const*);
template void EvaluateSelf(const KernelProgram&, const float*, const float* const*,
                           const float* const*, int64_t, float*);
template void EvaluateSelf(const KernelProgram&, const double*, const double* const*,
                           const double* const*, int64_t, double*);

}  // namespace phimap
#endif  // HWY_ONCE
