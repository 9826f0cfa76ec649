// The sections of an artifact that hold a plan's stages. docs/formats.md describes every byte.
#ifndef PHIMAP_CORE_PLAN_PLAN_CODEC_H_
#define PHIMAP_CORE_PLAN_PLAN_CODEC_H_

#include <string>

#include "absl/status/status.h"
#include "core/plan/byte_codec.h"
#include "core/plan/plan.h"

namespace phimap {

// REQUIRES: the plan is valid. Numbers are at multiples of 64 bytes from the start of the section.
std::string EncodeInputStage(const InputStage& input);
std::string EncodeFeatureStage(const Plan& plan);
std::string EncodeProjectionStage(const Plan& plan);

// Fills in the stages of `plan` and validates it. DATA_LOSS for anything inconsistent;
// UNIMPLEMENTED for a kind of stage or kernel operation that this build does not know.
absl::Status DecodePlan(FloatType serving_type, ByteReader input, ByteReader features,
                        ByteReader projection, Plan& plan);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_PLAN_CODEC_H_
