// Properties of an operation, apart from its vector body: OpFacts<code>, which the operation's file
// specialises. An operation without facts, or without a body, does not compile.
#ifndef PHIMAP_CORE_KERNEL_OP_OP_FACTS_H_
#define PHIMAP_CORE_KERNEL_OP_OP_FACTS_H_

#include "absl/strings/string_view.h"
#include "core/kernel/kernel_parts.h"
#include "core/kernel/rounded_value.h"

namespace phimap {

// Effect on the stack.
enum class OpArity {
  kPush,    // pushes a value
  kUnary,   // replaces the top value
  kBinary,  // replaces the top two values by one
  kPair,    // replaces the top value by two
};

// What an operation reads besides the stack.
enum class OpReads {
  kNothing,
  kProduct,
  kShiftedProduct,
  kSquaredDistance,
  kL1Distance,
  kForm,
  kColumnSum,
  kString,
  kFactor,
};

// Besides these, an operation of each arity has
//   static constexpr absl::string_view kName;
//   Round: the error of the result, given the arguments' errors:
//     kPush           static const RoundedValue& Round(const KernelOp&, const RoundedOperands&);
//     kUnary, kPair   static RoundedValue Round(const KernelOp&, const RoundedValue& t,
//                                               const RoundingUnit&);
//     kBinary         static RoundedValue Round(const RoundedValue& s, const RoundedValue& t);
struct AnyOpFacts {
  static constexpr OpReads kReads = OpReads::kNothing;
  // Cost of an element relative to a third of an rbf, which has three operations.
  static constexpr double kThirdsOfRbf = 1;
  // Returns what is wrong with the operation's parameters, which are finite, or "".
  static absl::string_view WhyInvalid(const KernelOp&) { return ""; }
};
struct PushFacts : AnyOpFacts {
  static constexpr OpArity kArity = OpArity::kPush;
};
struct UnaryFacts : AnyOpFacts {
  static constexpr OpArity kArity = OpArity::kUnary;
};
struct BinaryFacts : AnyOpFacts {
  static constexpr OpArity kArity = OpArity::kBinary;
};

template <KernelOpCode>
struct OpFacts;

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_OP_OP_FACTS_H_
