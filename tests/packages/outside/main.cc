// A program of another project, which knows of phimap only what is installed. It calls the server
// at the address that it is given, and prints what came.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "phimap/client.h"
#include "phimap/error.h"
#include "phimap/kernel_server.h"
#include "phimap/status_macros.h"

namespace {

using phimap::client::Batch;
using phimap::client::Client;
using phimap::client::KernelServer;
using phimap::client::MakeRowBlock;
using phimap::client::MemoryRowSource;
using phimap::client::TransformResult;

absl::Status Run(const char* address) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(address, {}));
  std::vector<double> numbers;
  for (int i = 0; i < 400; ++i) numbers.push_back((i * 37 % 101) / 10.0);
  MemoryRowSource rows(MakeRowBlock(numbers, 4));
  PHIMAP_ASSIGN_OR_RETURN(
      const phimap::v1::Version built,
      client->Build(
          {.name = "outside", .spec = "f2(landmarks=20)", .kernel = "rbf(gamma=0.1)", .seed = 1},
          rows));
  std::printf("built %s\n", phimap::client::ReferenceTo(built.ref()).c_str());

  PHIMAP_ASSIGN_OR_RETURN(const std::vector<phimap::v1::Mapping> mappings, client->ListMappings());
  for (const phimap::v1::Mapping& mapping : mappings) {
    std::printf("mapping %s\n", mapping.name().c_str());
  }

  PHIMAP_ASSIGN_OR_RETURN(const TransformResult result,
                          client->Transform("outside", MakeRowBlock(numbers, 4)));
  std::printf("features %d x %d\n", result.features.rows, result.features.columns);

  const absl::Status refused = client->Transform("outside", MakeRowBlock(numbers, 5)).status();
  const std::optional<phimap::ErrorDetail> detail = phimap::DetailOf(refused);
  std::printf("refused %s %s\n", detail ? detail->reason.c_str() : "",
              detail ? detail->field.c_str() : "");

  // A kernel of this program's own; nobody calls it here.
  KernelServer::Options options;
  options.kernels["one"] = [](const Batch& left, const Batch& right, double* block) {
    for (size_t i = 0; i < left.size() * right.size(); ++i) block[i] = 1;
    return absl::OkStatus();
  };
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<KernelServer> server,
                          KernelServer::Start(std::move(options)));
  std::printf("kernel server %s\n", server->address().empty() ? "" : "listens");
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: outside HOST:PORT\n");
    return 2;
  }
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
