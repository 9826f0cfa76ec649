#include "tests/core/mapping/wide_kernels.h"

#include <map>

namespace phimap::testing {
namespace {

template <typename Term>
Wide SumOfTerms(const WideRow& x, const WideRow& y, const Term& term) {
  Wide sum = 0;
  for (size_t k = 0; k < x.size(); ++k) sum += term(x[k], y[k]);
  return sum;
}

Wide WideDot(const WideRow& x, const WideRow& y) {
  return SumOfTerms(x, y, [](Wide a, Wide b) { return a * b; });
}

Wide WideSquare(const WideRow& x, const WideRow& y) {
  return SumOfTerms(x, y, [](Wide a, Wide b) { return (a - b) * (a - b); });
}

Wide WideDistance(const WideRow& x, const WideRow& y) { return WideSqrt(WideSquare(x, y)); }

Wide WideL1(const WideRow& x, const WideRow& y) {
  return SumOfTerms(x, y, [](Wide a, Wide b) { return WideAbs(a - b); });
}

// Returns Σ t over the columns where x + y > 0.
template <typename Term>
Wide SumWherePositive(const WideRow& x, const WideRow& y, const Term& term) {
  return SumOfTerms(x, y, [&](Wide a, Wide b) { return a + b > 0 ? term(a, b) : Wide{0}; });
}

// Parameters are powers of two, or sums of few of them, so that text and formula have the same.
const RowKernel kRowKernels[] = {
    {"linear", "linear()", WideDot},
    {"poly",
     "poly(degree=3, gamma=0.25, coef0=1)",
     [](const WideRow& x, const WideRow& y) {
       return WidePower(Wide{0.25} * WideDot(x, y) + 1, 3);
     },
     RowKind::kNormal,
     {0.01, 0.01, 0.02}},
    {"rbf",
     "rbf(gamma=0.25)",
     [](const WideRow& x, const WideRow& y) { return WideExp(Wide{-0.25} * WideSquare(x, y)); },
     RowKind::kNormal,
     {0.01, 0.01, 0.05}},
    {"laplacian", "laplacian(gamma=0.25)",
     [](const WideRow& x, const WideRow& y) { return WideExp(Wide{-0.25} * WideL1(x, y)); }},
    {"matern",
     "matern(nu=0.5, length_scale=2)",
     [](const WideRow& x, const WideRow& y) { return WideExp(-WideDistance(x, y) / 2); },
     RowKind::kNormal,
     {3e-4, 1e-4, 1e-4}},
    {"matern",
     "matern(nu=0.5, length_scale=1, scales=[2, 2, 4, 4])",
     [](const WideRow& x, const WideRow& y) {
       const WideRow u = {x[0] / 2, x[1] / 2, x[2] / 4, x[3] / 4};
       const WideRow v = {y[0] / 2, y[1] / 2, y[2] / 4, y[3] / 4};
       return WideExp(-WideDistance(u, v));
     },
     RowKind::kNormal,
     {3e-4, 1e-4, 1e-4}},
    {"matern",
     "exp(matern(nu=0.5, length_scale=2))*matern(nu=0.5, length_scale=4)",
     [](const WideRow& x, const WideRow& y) {
       return WideExp(WideExp(-WideDistance(x, y) / 2)) * WideExp(-WideDistance(x, y) / 4);
     },
     RowKind::kNormal,
     {3e-4, 2e-4, 1e-4}},
    {"matern",
     "matern(nu=1.5, length_scale=2)",
     [](const WideRow& x, const WideRow& y) {
       const Wide r = WideSqrt(3) * WideDistance(x, y) / 2;
       return (1 + r) * WideExp(-r);
     },
     RowKind::kNormal,
     {0.01, 0.01, 0.1}},
    {"matern",
     "matern(nu=2.5, length_scale=2)",
     [](const WideRow& x, const WideRow& y) {
       const Wide r = WideSqrt(5) * WideDistance(x, y) / 2;
       return (1 + r + r * r / 3) * WideExp(-r);
     },
     RowKind::kNormal,
     {0.02, 0.01, 0.03}},
    {"rational_quadratic", "rational_quadratic(alpha=1.5, length_scale=2)",
     [](const WideRow& x, const WideRow& y) {
       return WideExp(Wide{-1.5} * WideLog(1 + WideSquare(x, y) / 12));
     }},
    {"additive_chi2", "additive_chi2()",
     [](const WideRow& x, const WideRow& y) {
       return SumWherePositive(x, y, [](Wide a, Wide b) { return 2 * a * b / (a + b); });
     },
     RowKind::kPositive},
    {"chi2", "chi2(gamma=0.5)",
     [](const WideRow& x, const WideRow& y) {
       return WideExp(Wide{-0.5} * SumWherePositive(x, y, [](Wide a, Wide b) {
                        return (a - b) * (a - b) / (a + b);
                      }));
     },
     RowKind::kPositive},
    {"histogram_intersection", "histogram_intersection()",
     [](const WideRow& x, const WideRow& y) {
       return SumOfTerms(x, y, [](Wide a, Wide b) { return a < b ? a : b; });
     },
     RowKind::kPositive},
    {"delta", "delta()",
     [](const WideRow& x, const WideRow& y) { return x == y ? Wide{1} : Wide{0}; },
     RowKind::kCategories},
    {"cosine", "cosine()",
     [](const WideRow& x, const WideRow& y) {
       return WideDot(x, y) / WideSqrt(WideDot(x, x)) / WideSqrt(WideDot(y, y));
     }},
    {"bilinear", "bilinear(diagonal=[1, 2, 0.5, 4])",
     [](const WideRow& x, const WideRow& y) {
       return x[0] * y[0] + 2 * x[1] * y[1] + x[2] * y[2] / 2 + 4 * x[3] * y[3];
     }},
    {"weight",
     "weight(norm_power=1)*rbf(gamma=0.25)",
     [](const WideRow& x, const WideRow& y) {
       return WideSqrt(WideDot(x, x)) * WideSqrt(WideDot(y, y)) *
              WideExp(Wide{-0.25} * WideSquare(x, y));
     },
     RowKind::kNormal,
     {0.02, 0.01, 0.03}},
};

using NgramCount = std::map<std::string, int>;

// Strings of this file are ASCII, so a character is a byte.
NgramCount NgramsOf(const std::string& text, size_t n) {
  NgramCount counts;
  for (size_t k = 0; k + n <= text.size(); ++k) ++counts[text.substr(k, n)];
  return counts;
}

int CountIn(const NgramCount& counts, const std::string& ngram) {
  const auto found = counts.find(ngram);
  return found == counts.end() ? 0 : found->second;
}

Wide WideSpectrum(const std::string& x, const std::string& y) {
  const NgramCount of_y = NgramsOf(y, 2);
  Wide sum = 0;
  for (const auto& [ngram, count] : NgramsOf(x, 2)) sum += count * CountIn(of_y, ngram);
  return sum;
}

Wide WideJaccard(const std::string& x, const std::string& y) {
  const NgramCount of_x = NgramsOf(x, 2);
  const NgramCount of_y = NgramsOf(y, 2);
  int shared = 0;
  for (const auto& [ngram, count] : of_x) shared += of_y.count(ngram) > 0 ? 1 : 0;
  return Wide{1} * shared / static_cast<int>(of_x.size() + of_y.size() - shared);
}

const TextKernel kTextKernels[] = {
    {"spectrum", "spectrum(n=2)", WideSpectrum},
    {"jaccard", "jaccard(n=2)", WideJaccard},
};

}  // namespace

absl::Span<const RowKernel> RowKernels() { return kRowKernels; }
absl::Span<const TextKernel> TextKernels() { return kTextKernels; }

}  // namespace phimap::testing
