// Golden vectors of a version: rows and the bits of their features.
#ifndef PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
#define PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_

#include <optional>

#include "core/certificate/certificate.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// The features of `rows` as `plan` serves them. nullopt on a vector unit without fused
// multiply-add, whose bits are its own, and when a row's features overflow the serving type.
std::optional<SelfCheck> MakeSelfCheck(const Plan& plan, const Matrix<float>& rows);

// How many rows a self-check takes: 4, or as many as keep it under 256 KiB, and at least 1.
int64_t SelfCheckRows(int64_t input_columns, int64_t output_columns);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_SELF_CHECK_H_
