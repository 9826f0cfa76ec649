// The names of all streams of random numbers. This is a header of its own so that a new stream
// recompiles only the code that draws from a stream.
#ifndef PHIMAP_CORE_RANDOM_STREAM_IDS_H_
#define PHIMAP_CORE_RANDOM_STREAM_IDS_H_

#include <cstdint>

#include "core/random/random_stream.h"

namespace phimap {

// The values are frozen (I1). New streams are added at the end.
enum class StreamId : uint32_t {
  kReservoir = 1,            // which rows of the stream are kept
  kSplit = 2,                // pool or held out
  kLandmarks = 3,            // which rows of the pool are landmarks
  kProjection = 4,           // the normal entries of a Johnson–Lindenstrauss matrix
  kGammaPairs = 5,           // pairs of pool rows for gamma=median
  kCertificatePairs = 6,     // pairs of held-out rows for the kernel error
  kStartVectors = 7,         // where iterations (Lanczos, power) begin
  kSelfCheck = 8,            // made-up rows of the self-check
  kSignProjection = 9,       // the signs of a ±1 projection
  kSparseProjection = 10,    // the random choices of a sparse projection
  kOrthonormalRows = 11,     // the normal numbers that are made orthonormal
  kFourierFrequencies = 12,  // the normal numbers that frequencies are made of
  kFourierLengths = 13,      // the normal numbers that make the lengths of orthogonal frequencies
  kFourierPhases = 14,       // the phases of Fourier features in phase form
  kFourierCauchy = 15,       // the normal numbers whose ratios are the frequencies of a Laplacian
  kGramGaps = 16,            // which entries of a Gram matrix are kept when it is sparsified
  kGramSigns = 17,           // the signs of a Gram matrix that is quantised
  kExpansionRounding = 18,   // which weights of an expansion are kept when it is rounded
  kInputSigns = 19,          // the signs of a projection that precedes the kernel
  kRandomPivots = 20,        // which rows rpcholesky proposes and accepts
  kTrainingOrder = 21,       // the order in which a learner looks at its rows
  kEvaluationSplit = 22,     // which labeled rows a learner is tested on
  kWeakSeparators = 23,      // the normal numbers of separators that are drawn and tried
  kSgdRows = 24,             // which row each step of stochastic gradient descent draws
  kRandomPivotFill = 25,     // the rows that rpcholesky adds when nothing is left to explain
  kLabRows = 26,             // the rows that experiments of the laboratory draw
  kLabLabels = 27,           // the classes of kLabRows, and other random choices of an experiment
  kLabOrder = 28,            // which rows an experiment takes, in which order
  kD2Seeds = 29,             // which rows greedy D² seeding draws as candidates
  kPositiveRows = 30,        // the normal numbers of positive features
  kPositiveLengths = 31,     // the normal numbers that make the lengths of their orthogonal rows
  kFourierScales = 32,       // the normal numbers that the scales of frequencies are made of
  kDriftTies = 33,           // the places of rows among those of their bin, in the test for drift
  kBaselineRows = 34,        // which rows the raw baseline of a training learns from
  kParts = 35,               // the key under which rows are hashed to parts
};

}  // namespace phimap

#endif  // PHIMAP_CORE_RANDOM_STREAM_IDS_H_
