// Tests kernel services that phimapd calls over TLS.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/kernel_server.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class KernelServiceTlsTest : public ServerFixture {
 protected:
  ~KernelServiceTlsTest() override { Stop(); }

  // Serves the kernel K(x, y) = Σ xᵢyᵢ. Without a certificate in `pair`, serves without TLS.
  void Serve(const KeyPair& pair) {
    client::KernelServer::Options options;
    options.certificate = pair.certificate;
    options.key = pair.key;
    options.kernels["dot"] = [](const client::Batch& left, const client::Batch& right,
                                double* block) {
      for (size_t i = 0; i < left.size(); ++i) {
        for (size_t j = 0; j < right.size(); ++j) {
          *block = 0;
          for (int64_t k = 0; k < left.columns(); ++k) {
            *block += left.number(i, k) * right.number(j, k);
          }
          ++block;
        }
      }
      return absl::OkStatus();
    };
    auto server = client::KernelServer::Start(options).value();
    service_ = std::move(server);
  }
  // Starts phimapd as the flags --kernel_service=here=tls:… and --kernel_service_ca would.
  void StartTrusting(const CertificateAuthority& authority) {
    const KernelAddress address =
        ParseKernelAddress(absl::StrCat("here=tls:", service_->address())).value();
    options_.kernel_services = {address};
    options_.kernel_service_ca = files_.path() + "/authorities.pem";
    ReplaceFile(options_.kernel_service_ca, authority.certificate());
    Start();
  }
  grpc::Status BuildOf(const std::string& mapping) {
    v1::BuildSpec spec = Spec(mapping, "f2(landmarks=3)");
    spec.set_kernel("service(endpoint=here, kernel=dot)");
    return Build(spec);
  }

  TemporaryFolder files_;
  CertificateAuthority authority_{"phimap test authority"};
  CertificateAuthority stranger_{"another authority"};
  std::unique_ptr<client::KernelServer> service_;
};

TEST_F(KernelServiceTlsTest, AServiceOfTheRightAuthorityIsCalledToBuildAndToTransform) {
  Serve(authority_.Issue());
  StartTrusting(authority_);
  ASSERT_THAT(BuildOf("letter"), IsOk());
  const int64_t calls = service_->calls();
  EXPECT_GT(calls, 0);
  v1::TransformResponse response;
  EXPECT_THAT(Transform(TransformOf("letter", UniformExamples(2, 3)), &response), IsOk());
  EXPECT_EQ(response.features().columns(), 3);
  EXPECT_EQ(service_->calls(), calls + 1);
}

TEST_F(KernelServiceTlsTest, WhoeverCannotShowARightCertificateIsSentNothing) {
  const struct {
    const char* who;
    KeyPair pair;
  } kCases[] = {
      {"of another authority", stranger_.Issue()},
      {"expired", authority_.Issue({.days = -1})},
      {"in the clear", {}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.who);
    Serve(c.pair);
    StartTrusting(authority_);
    const grpc::Status refused = BuildOf("letter");
    EXPECT_THAT(refused, IsError(Code::UNAVAILABLE, "KERNEL_SERVICE_UNAVAILABLE"));
    EXPECT_EQ(FactsOf(refused).metadata["service"], "here");
    EXPECT_THAT(refused.error_message(), HasSubstr("over TLS"));
    EXPECT_THAT(refused.error_message(), HasSubstr("--kernel_service_ca"));
    EXPECT_EQ(service_->calls(), 0);
    Stop();
  }
}

}  // namespace
}  // namespace phimap::testing
