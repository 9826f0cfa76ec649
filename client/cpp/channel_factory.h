// Makes connections to a server, or to several equivalent ones, with their encryption and
// credentials.
#ifndef PHIMAP_CLIENT_CPP_CHANNEL_FACTORY_H_
#define PHIMAP_CLIENT_CPP_CHANNEL_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace phimap::client {

// Thread-safe. The channels must not outlive the factory.
class ChannelFactory {
 public:
  // Reads the files of options.tls. INVALID_ARGUMENT for a target or a token that is malformed, for
  // a key without certificate and for a token that would travel in the clear; NOT_FOUND for a file
  // that cannot be read.
  static absl::StatusOr<ChannelFactory> Create(absl::string_view target,
                                               const ConnectOptions& options);

  // Returns a channel with a connection of its own, made when it is first needed.
  std::shared_ptr<grpc::Channel> Make() const;

 private:
  ChannelFactory(std::string target, std::string token, std::string server_name,
                 std::shared_ptr<grpc::ChannelCredentials> credentials);

  std::string target_;
  std::string token_;
  std::string server_name_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

// Whether calls to `target` stay on this machine: a unix: path, localhost or loopback addresses,
// all of them if there are several.
bool StaysOnThisMachine(absl::string_view target);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_CHANNEL_FACTORY_H_
