// The two string kernels, which differ only in what they compute from the n-grams
// (string_kernel.h).
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr absl::string_view kNgramUnits[] = {"character", "byte", "word"};

constexpr Parameter kNgramParameters[] = {
    {.name = "n",
     .type = ParameterType::kInteger,
     .absent = Parameter::Absent::kRequired,
     .least = 1,
     .largest = kMaxNgram,
     .line = "units in an n-gram"},
    {.name = "unit",
     .type = ParameterType::kWord,
     .default_text = "character",
     .words = kNgramUnits,
     .line = "what an n-gram is made of"},
};

StringUnit UnitOf(const ParameterValues& values) {
  return static_cast<StringUnit>(values.WordIndex("unit") + 1);
}

KernelDomain InputOfNgrams(const ParameterValues& values) {
  return UnitOf(values) == StringUnit::kByte ? KernelDomain::kTextOrBytes : KernelDomain::kText;
}

template <StringMeasure kMeasure>
void CompileNgrams(const ParameterValues& values, KernelEmitter& emitter) {
  emitter.PushString({.measure = kMeasure,
                      .unit = UnitOf(values),
                      .n = static_cast<int32_t>(values.Integer("n"))});
}

}  // namespace

extern const LeafKernel kSpectrumKernel;
constinit const LeafKernel kSpectrumKernel = {
    .name = "spectrum",
    .formula = "Σ c_x(g)·c_y(g) over n-grams g",
    .line = "shared n-grams, weighted by their counts in both strings",
    .parameters = kNgramParameters,
    .compile = CompileNgrams<StringMeasure::kSpectrum>,
    .input = InputOfNgrams,
};

extern const LeafKernel kJaccardKernel;
constinit const LeafKernel kJaccardKernel = {
    .name = "jaccard",
    .formula = "|G_x ∩ G_y|/|G_x ∪ G_y|",
    .line = "the share of n-grams that two strings have in common; 1 if both have none",
    .parameters = kNgramParameters,
    .compile = CompileNgrams<StringMeasure::kJaccard>,
    .input = InputOfNgrams,
};

}  // namespace phimap
