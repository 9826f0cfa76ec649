// The origin of a number of the advisor.
#ifndef PHIMAP_CORE_THEORY_TIER_H_
#define PHIMAP_CORE_THEORY_TIER_H_

namespace phimap {

enum class Tier {
  kLiteral,  // the formula as the paper prints it
  kDerived,  // sharper constants out of the same proof
  kExact,    // the smallest number that the exact law of a Gaussian projection allows
};

inline const char* TierName(Tier tier) {
  switch (tier) {
    case Tier::kLiteral:
      return "literal";
    case Tier::kDerived:
      return "derived";
    case Tier::kExact:
      return "exact law";
  }
  return "";
}

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_TIER_H_
