#include "server/rpc/transport/proxy_header.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

// The bytes here are written by hand from HAProxy's doc/proxy-protocol.txt, in hexadecimal, unless
// it is said who sent them.

namespace phimap::testing {
namespace {

constexpr char kSignatureHex[] = "0d0a0d0a000d0a515549540a";
// 203.0.113.7, port 56324, to 192.168.0.11, port 443.
constexpr char kTcp4Hex[] = "cb007107c0a8000bdc0401bb";

std::string FromHex(const std::string& hex) {
  return absl::HexStringToBytes(absl::StrCat(kSignatureHex, hex));
}

// Parses a header that is complete.
absl::StatusOr<std::optional<Peer>> Parse(const std::string& header) {
  const absl::StatusOr<size_t> missing = MissingProxyHeaderBytes(header);
  if (!missing.ok()) return missing.status();
  EXPECT_EQ(*missing, 0U);
  return ParseProxyHeader(header);
}

TEST(ProxyHeaderTest, AClientIsKnownByItsAddressAndPort) {
  struct Case {
    const char* what;
    std::string hex;
    const char* address;
    const char* host;
    const char* network;
  };
  const std::string tcp6 = "20010db8000000010000000000000007" +  // 2001:db8:0:1::7
                           std::string("20010db8000000000000000000000001") + "ffff1d1a";
  for (const Case& one : {Case{"TCP over IPv4", absl::StrCat("2111000c", kTcp4Hex),
                               "ipv4:203.0.113.7:56324", "203.0.113.7", "203.0.113.7"},
                          Case{"UDP over IPv4", absl::StrCat("2112000c", kTcp4Hex),
                               "ipv4:203.0.113.7:56324", "203.0.113.7", "203.0.113.7"},
                          Case{"TCP over IPv6", "21210024" + tcp6, "ipv6:[2001:db8:0:1::7]:65535",
                               "2001:db8:0:1::7", "2001:db8:0:1::/64"},
                          Case{"UDP over IPv6", "21220024" + tcp6, "ipv6:[2001:db8:0:1::7]:65535",
                               "2001:db8:0:1::7", "2001:db8:0:1::/64"},
                          Case{"IPv4 in IPv6",
                               "21210024"
                               "00000000000000000000ffff0a010203"
                               "00000000000000000000ffff0a010204"
                               "00501d1a",
                               "ipv4:10.1.2.3:80", "10.1.2.3", "10.1.2.3"}}) {
    SCOPED_TRACE(one.what);
    const absl::StatusOr<std::optional<Peer>> peer = Parse(FromHex(one.hex));
    ASSERT_TRUE(peer.ok()) << peer.status();
    ASSERT_TRUE(peer->has_value());
    EXPECT_EQ((*peer)->address, one.address);
    EXPECT_EQ((*peer)->host, one.host);
    EXPECT_EQ((*peer)->network, one.network);
    EXPECT_FALSE((*peer)->proxy);
    EXPECT_FALSE((*peer)->unix_socket);
    EXPECT_FALSE((*peer)->certificate_verified);
  }
}

TEST(ProxyHeaderTest, AProxyThatNamesNoAddressIsThePeerItself) {
  const std::string unix_addresses(2 * 108 * 2, '0');
  for (const std::string& hex :
       {std::string("20000000"),             // LOCAL
        std::string("2011000c") + kTcp4Hex,  // LOCAL, with addresses that are skipped
        std::string("20ff0003") + "ffffff",  // LOCAL, with bytes that are skipped
        std::string("21000000"),             // PROXY, unspecified
        std::string("21000003") + "ffffff",  // likewise, with bytes that are skipped
        std::string("213100d8") + unix_addresses, std::string("213200d8") + unix_addresses}) {
    const absl::StatusOr<std::optional<Peer>> peer = Parse(FromHex(hex));
    ASSERT_TRUE(peer.ok()) << hex << peer.status();
    EXPECT_FALSE(peer->has_value()) << hex;
  }
}

TEST(ProxyHeaderTest, ValuesBehindTheAddressesAreSkipped) {
  for (const std::string& values :
       {std::string("040000"), std::string("0400021234"), std::string("e00001ff") + "ee0000"}) {
    const std::string size =
        absl::BytesToHexString(std::string(1, static_cast<char>(12 + values.size() / 2)));
    const absl::StatusOr<std::optional<Peer>> peer =
        Parse(FromHex(absl::StrCat("211100", size, kTcp4Hex, values)));
    ASSERT_TRUE(peer.ok()) << values << peer.status();
    EXPECT_EQ((*peer)->host, "203.0.113.7") << values;
  }
}

// The checksums were computed bit by bit by another program from the polynomial of RFC 4960.
TEST(ProxyHeaderTest, AChecksumMustFit) {
  const std::string alone = absl::StrCat("21110013", kTcp4Hex, "030004");
  EXPECT_TRUE(Parse(FromHex(alone + "c0011d8d")).ok());
  const std::string before = absl::StrCat("2111001b", kTcp4Hex, "0400021234", "030004");
  EXPECT_TRUE(Parse(FromHex(before + "b755f497" + "e00000")).ok());
  for (const std::string& wrong :
       {alone + "c0011d8c", alone + "00000000", before + "b755f497" + "e10000"}) {
    EXPECT_THAT(Parse(FromHex(wrong)).status(),
                IsError(StatusCode::kInvalidArgument, _, _, HasSubstr("checksum")))
        << wrong;
  }
  EXPECT_THAT(Parse(FromHex(absl::StrCat("21110011", kTcp4Hex, "0300021d8d"))).status(),
              IsError(StatusCode::kInvalidArgument, _, _,
                      HasSubstr("expected a checksum of 4 bytes, got 2")));
}

// HAProxy 2.6.12 sent these, with proxy-v2-options
// ssl,cert-cn,ssl-cipher,crc32c,authority,unique-id: for a client over TLS at 127.0.0.9, for one at
// ::1, and for one on a Unix socket.
TEST(ProxyHeaderTest, HeadersOfHaproxyAreRead) {
  const auto over_tls = Parse(FromHex(
      "2111005a7f0000097f000001d6c285f1030004b22e1b4f01000268320200096c6f63616c686f7374050008374630"
      "303030303920002801000000002100"
      "07544c5376312e33230016544c535f4145535f3235365f47434d5f534841333834"));
  ASSERT_TRUE(over_tls.ok()) << over_tls.status();
  EXPECT_EQ((*over_tls)->address, "ipv4:127.0.0.9:54978");
  const auto ipv6 = Parse(FromHex(
      "212100560000000000000000000000000000000100000000000000000000000000000001a45285f1030004e47c69"
      "9205002030303030303030303030303030303030303030303030303030303030303030312000050000000000"));
  ASSERT_TRUE(ipv6.ok()) << ipv6.status();
  EXPECT_EQ((*ipv6)->address, "ipv6:[::1]:42066");
  const auto local = Parse(FromHex("20000012030004955e6a000500002000050000000000"));
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_FALSE(local->has_value());
}

TEST(ProxyHeaderTest, NoByteBehindTheHeaderIsAskedFor) {
  const std::string header = FromHex(absl::StrCat("21110013", kTcp4Hex, "0400040a0b0c0d"));
  for (size_t begun = 0; begun <= header.size(); ++begun) {
    const absl::StatusOr<size_t> missing =
        MissingProxyHeaderBytes(absl::string_view(header).substr(0, begun));
    ASSERT_TRUE(missing.ok()) << begun << missing.status();
    EXPECT_EQ(*missing, (begun < 16 ? 16 : header.size()) - begun) << begun;
  }
}

TEST(ProxyHeaderTest, WhatIsNoHeaderIsRefusedAtItsFirstWrongByte) {
  const std::string signature = FromHex("");
  for (size_t i = 0; i < signature.size(); ++i) {
    std::string begun = signature.substr(0, i + 1);
    EXPECT_TRUE(MissingProxyHeaderBytes(begun).ok()) << i;
    begun[i] = static_cast<char>(begun[i] ^ 1);
    EXPECT_THAT(MissingProxyHeaderBytes(begun).status(),
                IsError(StatusCode::kInvalidArgument, _, _, HasSubstr("does not begin with")))
        << i;
  }
  EXPECT_THAT(MissingProxyHeaderBytes("PRI * HTTP/2.0\r\n").status(),
              IsError(StatusCode::kInvalidArgument, _, _, HasSubstr("does not begin with")));
}

TEST(ProxyHeaderTest, Version1IsNamedWhereItIsRefused) {
  EXPECT_THAT(MissingProxyHeaderBytes("PROXY TCP4 192.1").status(),
              IsError(StatusCode::kInvalidArgument, _, _,
                      "the header is of version 1; expected version 2"));
}

TEST(ProxyHeaderTest, HeadersThatTheSpecificationDoesNotAllowAreRefused) {
  struct Case {
    const char* what;
    std::string hex;
    const char* why;
  };
  for (const Case& one :
       {Case{"version 1 in the binary form", absl::StrCat("1111000c", kTcp4Hex), "is of version 1"},
        Case{"version 3", absl::StrCat("3111000c", kTcp4Hex), "is of version 3"},
        Case{"an unknown command", absl::StrCat("2211000c", kTcp4Hex), "has command 2"},
        Case{"an unknown family", absl::StrCat("2141000c", kTcp4Hex), "family and transport 0x41"},
        Case{"an unknown transport", absl::StrCat("2113000c", kTcp4Hex),
             "family and transport 0x13"},
        Case{"a family without transport", absl::StrCat("2110000c", kTcp4Hex),
             "family and transport 0x10"},
        Case{"a transport without family", "21010000", "family and transport 0x01"},
        Case{"no addresses", "21110000", "expected 12 bytes of addresses, got 0"},
        Case{"half an address", "2111000bcb007107c0a8000bdc0401",
             "expected 12 bytes of addresses, got 11"},
        Case{"addresses of IPv4 as of IPv6", absl::StrCat("2121000c", kTcp4Hex),
             "expected 36 bytes of addresses, got 12"},
        Case{"half a value's head", absl::StrCat("2111000e", kTcp4Hex, "0400"),
             "a value at byte 28 of the header exceeds it"},
        Case{"half a value", absl::StrCat("21110010", kTcp4Hex, "04000212"),
             "a value at byte 28 of the header exceeds it"}}) {
    SCOPED_TRACE(one.what);
    EXPECT_THAT(Parse(FromHex(one.hex)).status(),
                IsError(StatusCode::kInvalidArgument, _, _, HasSubstr(one.why)));
  }
}

TEST(ProxyHeaderTest, AHeaderOverTheLimitIsRefusedBeforeItArrives) {
  const absl::StatusOr<size_t> missing = MissingProxyHeaderBytes(FromHex("21110ff0"));
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_EQ(*missing, kMaxProxyHeaderBytes - 16);
  EXPECT_THAT(MissingProxyHeaderBytes(FromHex("21110ff1")).status(),
              IsError(StatusCode::kInvalidArgument, _, _,
                      "the header has 4097 bytes, over the limit of 4096"));
}

}  // namespace
}  // namespace phimap::testing
