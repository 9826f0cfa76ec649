#include "server/rpc/transport/proxy_header.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/digest/crc32c.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr absl::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
// How a header of version 1 begins, which is a line of text.
constexpr absl::string_view kVersion1 = "PROXY ";
// The signature, version and command, family and transport, and the length of the rest.
constexpr size_t kFixedBytes = 16;
constexpr size_t kChecksumBytes = 4;
constexpr uint8_t kChecksumType = 0x03;

// Commands.
constexpr int kLocal = 0;
constexpr int kProxy = 1;
// Family and transport of the client. Datagrams are those of a client of HTTP/3, whose calls the
// proxy passes on over TCP.
constexpr int kUnspecified = 0x00;
constexpr int kTcp4 = 0x11;
constexpr int kUdp4 = 0x12;
constexpr int kTcp6 = 0x21;
constexpr int kUdp6 = 0x22;
constexpr int kUnixStream = 0x31;
constexpr int kUnixDatagram = 0x32;

uint8_t ByteAt(absl::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

uint16_t ShortAt(absl::string_view bytes, size_t i) {
  return static_cast<uint16_t>(ByteAt(bytes, i) << 8 | ByteAt(bytes, i + 1));
}

uint32_t WordAt(absl::string_view bytes, size_t i) {
  return uint32_t{ShortAt(bytes, i)} << 16 | ShortAt(bytes, i + 2);
}

template <typename... Parts>
absl::Status Malformed(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Checks that the values behind the addresses fill the header, and its checksum, if there is one.
absl::Status CheckValues(absl::string_view header, size_t begin) {
  constexpr size_t kHead = 3;  // type and length
  for (size_t at = begin; at < header.size();) {
    const size_t left = header.size() - at;
    if (left < kHead || left - kHead < ShortAt(header, at + 1)) {
      return Malformed("a value at byte ", at, " of the header exceeds it");
    }
    const size_t size = ShortAt(header, at + 1);
    if (ByteAt(header, at) == kChecksumType) {
      if (size != kChecksumBytes) {
        return Malformed("expected a checksum of ", kChecksumBytes, " bytes, got ", size);
      }
      std::string zeroed(header);
      std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(at + kHead), kChecksumBytes, '\0');
      if (Crc32c(zeroed) != WordAt(header, at + kHead)) {
        return Malformed("the checksum of the header is wrong");
      }
    }
    at += kHead + size;
  }
  return absl::OkStatus();
}

// Returns the source of a header whose addresses are of type Address (in_addr or in6_addr).
template <typename Address>
absl::StatusOr<std::optional<Peer>> SourceOf(absl::string_view header) {
  constexpr size_t kPorts = kFixedBytes + 2 * sizeof(Address);
  constexpr size_t kEnd = kPorts + 2 * sizeof(uint16_t);
  if (header.size() < kEnd) {
    return Malformed("expected ", kEnd - kFixedBytes, " bytes of addresses, got ",
                     header.size() - kFixedBytes);
  }
  PHIMAP_RETURN_IF_ERROR(CheckValues(header, kEnd));
  Address address;
  std::memcpy(&address, header.data() + kFixedBytes, sizeof(address));
  return PeerAt(address, ShortAt(header, kPorts));
}

}  // namespace

absl::StatusOr<size_t> MissingProxyHeaderBytes(absl::string_view begun) {
  const size_t compared = std::min(begun.size(), kSignature.size());
  if (begun.substr(0, compared) != kSignature.substr(0, compared)) {
    if (absl::StartsWith(begun, kVersion1)) {
      return Malformed("the header is of version 1; expected version 2");
    }
    return Malformed("the connection does not begin with a header of the PROXY protocol");
  }
  if (begun.size() < kFixedBytes) return kFixedBytes - begun.size();
  const size_t size = kFixedBytes + ShortAt(begun, 14);
  if (size > kMaxProxyHeaderBytes) {
    return Malformed("the header has ", size, " bytes, over the limit of ", kMaxProxyHeaderBytes);
  }
  PHIMAP_CHECK(begun.size() <= size);
  return size - begun.size();
}

absl::StatusOr<std::optional<Peer>> ParseProxyHeader(absl::string_view header) {
  const int version = ByteAt(header, 12) >> 4;
  if (version != 2) return Malformed("the header is of version ", version, "; expected version 2");
  const int command = ByteAt(header, 12) & 0xf;
  if (command == kLocal) return std::nullopt;
  if (command != kProxy) {
    return Malformed("the header has command ", command, "; expected 0 (LOCAL) or 1 (PROXY)");
  }
  const int family = ByteAt(header, 13);
  switch (family) {
    case kUnspecified:
    case kUnixStream:
    case kUnixDatagram:
      return std::nullopt;
    case kTcp4:
    case kUdp4:
      return SourceOf<in_addr>(header);
    case kTcp6:
    case kUdp6:
      return SourceOf<in6_addr>(header);
    default:
      return Malformed("the header has family and transport 0x", absl::Hex(family, absl::kZeroPad2),
                       "; expected 0x00, 0x11, 0x12, 0x21, 0x22, 0x31 or 0x32");
  }
}

bool BeginsAsProxyHeader(absl::string_view bytes) {
  return absl::StartsWith(bytes, kSignature) || absl::StartsWith(bytes, kVersion1);
}

}  // namespace phimap
