#include "server/admission/tls_files.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/certificates.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest() {
    ReplaceFile(files_.certificate, pair_.certificate);
    ReplaceFile(files_.key, pair_.key);
    ReplaceFile(files_.client_ca, authority_.certificate());
  }

  TemporaryFolder folder_;
  CertificateAuthority authority_{"phimap test authority"};
  const KeyPair pair_ = authority_.Issue({.days = 3});
  const TlsFiles files_{.certificate = folder_.path() + "/server.pem",
                        .key = folder_.path() + "/server.key",
                        .client_ca = folder_.path() + "/clients.pem"};
};

TEST_F(TlsFilesTest, GoodFilesTellWhenTheCertificateExpires) {
  const absl::Time expires = CheckTlsFiles(files_).value();
  // The certificate was issued for three days, less than an hour ago.
  EXPECT_GT(expires, absl::Now() + absl::Hours(71));
  EXPECT_LE(expires, absl::Now() + absl::Hours(72));
}

TEST_F(TlsFilesTest, ACertificateThatHasExpiredIsNoReasonNotToStart) {
  const KeyPair expired = authority_.Issue({.days = -1});
  ReplaceFile(files_.certificate, expired.certificate);
  ReplaceFile(files_.key, expired.key);
  const absl::Time expires = CheckTlsFiles(files_).value();
  EXPECT_LT(expires, absl::Now());
}

TEST_F(TlsFilesTest, AChainIsReadToItsEnd) {
  ReplaceFile(files_.certificate, absl::StrCat(pair_.certificate, "\n", authority_.certificate()));
  EXPECT_TRUE(CheckTlsFiles(files_).ok());
  ReplaceFile(files_.certificate,
              absl::StrCat(pair_.certificate, "\n", authority_.certificate().substr(0, 200),
                           "\n-----END CERTIFICATE-----\n"));
  EXPECT_THAT(std::string(CheckTlsFiles(files_).status().message()), HasSubstr("parsed"));
}

TEST_F(TlsFilesTest, WhatIsWrongIsNamedWithFlagAndFile) {
  const struct {
    const std::string& path;
    std::string text;
    const char* flag;
    const char* says;
  } cases[] = {
      {files_.certificate, "", "tls_certificate", "found none"},
      {files_.certificate, pair_.key, "tls_certificate", "found none"},
      {files_.key, "", "tls_key", "private key in PEM"},
      {files_.key, pair_.certificate, "tls_key", "private key in PEM"},
      {files_.key, Encrypted(pair_.key), "tls_key", "not encrypted"},
      {files_.key, authority_.Issue().key, "tls_key", "does not belong to the first certificate"},
      {files_.client_ca, "nonsense", "tls_client_ca", "found none"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.flag, ": ", c.says));
    ReplaceFile(files_.certificate, pair_.certificate);
    ReplaceFile(files_.key, pair_.key);
    ReplaceFile(c.path, c.text);
    const absl::Status status = CheckTlsFiles(files_).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(DetailOf(status).value_or(ErrorDetail()).field, c.flag);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.path));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says));
  }
}

TEST_F(TlsFilesTest, AMissingFileIsNamed) {
  for (const std::string* path : {&files_.client_ca, &files_.key, &files_.certificate}) {
    std::filesystem::remove(*path);
    const std::string message(CheckTlsFiles(files_).status().message());
    EXPECT_THAT(message, HasSubstr(*path));
    EXPECT_THAT(message, HasSubstr("No such file"));
  }
}

TEST_F(TlsFilesTest, AuthoritiesAreReadOrNamedWithFlagAndFile) {
  ReplaceFile(files_.client_ca,
              absl::StrCat("# ours\n", authority_.certificate(), pair_.certificate));
  const std::string both = ReadAuthorities("kernel_service_ca", files_.client_ca).value();
  EXPECT_EQ(both, absl::StrCat(authority_.certificate(), pair_.certificate));
  for (const char* text : {"", "nonsense"}) {
    ReplaceFile(files_.client_ca, text);
    const absl::Status wrong = ReadAuthorities("kernel_service_ca", files_.client_ca).status();
    EXPECT_EQ(ReasonOf(wrong), "TLS_FILE_INVALID");
    EXPECT_EQ(FieldOf(wrong), "kernel_service_ca");
    EXPECT_THAT(std::string(wrong.message()), HasSubstr(files_.client_ca));
  }
}

}  // namespace
}  // namespace phimap::testing
