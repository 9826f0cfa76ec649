// The checksum of the sections of artifacts, and of the chunks in which they are sent.
#ifndef PHIMAP_CORE_DIGEST_CRC32C_H_
#define PHIMAP_CORE_DIGEST_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace phimap {

// Returns the CRC-32C of `bytes` (polynomial 0x1EDC6F41, reflected, initial value and final xor ~0;
// RFC 3720 B.4): the CRC of Castagnoli. About 1 GB/s. Pure.
uint32_t Crc32c(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_DIGEST_CRC32C_H_
